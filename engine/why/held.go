package why

import (
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Held is an amount of a limit that a case holds over several tasks.
type Held struct {
	Case  workitem.CaseID `json:"case"`            // the case itself, or a descendant
	Path  string          `json:"path,omitempty"`  // the path of a descendant, from the case down
	Limit string          `json:"limit"`           // the name of the limit
	Key   string          `json:"key,omitempty"`   // "" if the limit has no keys
	N     int64           `json:"n"`               // the number of slots
	Task  string          `json:"task"`            // the task that began the hold
	Until string          `json:"until,omitempty"` // the task whose end ends the hold; "" if it is not known
	Text  string          `json:"text"`            // "holds 1 of slots crane, from load until leave has ended"
}

// holds collects the holds of the case.
func (v *visit) holds() {
	for i := range v.in.Rows.Rows {
		row := &v.in.Rows.Rows[i]
		list, err := quota.HoldsIn(row.State, row.Limit)
		if err != nil {
			continue // the engine reports the corrupt row
		}
		for k := range list {
			if h := &list[k]; h.Case == v.c.ID {
				v.hold(row.LimitKey, h)
			}
		}
	}
}

// hold adds a hold, unless it has ended and no engine has removed it from the row yet. Whether it has ended follows from
// the state of the case, not from the row: an engine that died may have left a row that is out of date.
func (v *visit) hold(of store.LimitKey, h *quota.Hold) {
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

// untilOf returns the task that ends the hold of a limit which a task begins; "" if the database does not have it.
func (v *visit) untilOf(name, task string) string {
	for _, t := range v.in.Takes[v.c.Fingerprint].Tasks[task] {
		if t.Limit == name {
			return t.Until
		}
	}
	return ""
}

// taskNamed returns a task of a case; nil if there is none of that name, as for the end of a hold that is not known.
func taskNamed(c *state.Case, name string) *state.Task {
	t, ok := c.Net.TaskByName(name)
	if !ok {
		return nil
	}
	return &c.Tasks[t]
}
