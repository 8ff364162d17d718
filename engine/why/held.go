package why

import (
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/ration"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Held is what a case holds of a limit over several tasks.
type Held struct {
	Case  workitem.CaseID `json:"case"`            // the case itself, or a descendant
	Path  string          `json:"path,omitempty"`  // of a descendant, from the case down
	Limit string          `json:"limit"`           // its name
	Key   string          `json:"key,omitempty"`   // whose it is; "" is the one that all share
	N     int64           `json:"n"`               // how many slots
	Task  string          `json:"task"`            // that began it
	Until string          `json:"until,omitempty"` // the task whose end ends it; "" if that is not known
	Text  string          `json:"text"`            // "holds 1 of slots crane, from load until leave has ended"
}

// holds notes what the case holds.
func (v *visit) holds() {
	for i := range v.in.Rows.Rows {
		row := &v.in.Rows.Rows[i]
		list, err := ration.HoldsIn(row.State, row.Limit)
		if err != nil {
			continue // the engine reports it
		}
		for k := range list {
			if h := &list[k]; h.Case == v.c.ID {
				v.hold(row.LimitKey, h)
			}
		}
	}
}

// hold notes what the case holds of one limit, unless that has ended and no engine has given it back yet.
func (v *visit) hold(of store.LimitKey, h *ration.Hold) {
	until := v.untilOf(of.Limit, h.Task)
	from, to := taskNamed(v.c, h.Task), taskNamed(v.c, until)
	if from == nil || to != nil && h.Over(v.c, from, to) || len(v.answer.Holds) >= MaxWaits {
		return
	}
	held := Held{Case: v.c.ID, Path: v.path, Limit: of.Limit, Key: v.in.shown("limit", of.Limit, of.Key), N: h.N, Task: h.Task, Until: until}
	held.Text = "holds " + limit.Reason{Limit: limit.Resource(of.Limit, h.N), N: h.N}.String() + whose(Limit{Key: held.Key}) + ", from " + h.Task + " on"
	if until != "" {
		held.Text = fmt.Sprintf("%s until %s has ended", held.Text[:len(held.Text)-len(" on")], until)
	}
	if v.path != "" {
		held.Text = v.path + " " + held.Text
	}
	v.answer.Holds = append(v.answer.Holds, held)
}

// untilOf is the task that ends what a task begins to hold of a limit; "" if the database does not say so.
func (v *visit) untilOf(name, task string) string {
	for _, t := range v.in.Takes[v.c.Fingerprint].Tasks[task] {
		if t.Limit == name {
			return t.Until
		}
	}
	return ""
}

func taskNamed(c *state.Case, name string) *state.Task {
	t, ok := c.Net.TaskByName(name)
	if !ok {
		return nil
	}
	return &c.Tasks[t]
}
