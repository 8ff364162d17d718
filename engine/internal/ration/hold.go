package ration

import (
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// End is the end of a hold: one that was begun by the activation given or, unless Only is set, by an earlier one.
type End struct {
	Hold
	Only bool
}

// Hold is what a case holds of a limit over several tasks. Its case and task identify it.
type Hold struct {
	Root workitem.CaseID `json:"root"`
	Case workitem.CaseID `json:"case"`
	Task string          `json:"task"` // that began it
	N    int64           `json:"n"`

	// Activation is the one of the task that began the hold, and After how many activations of the task that ends it were over then: by
	// them and the state of the case it can be said whether the hold has ended.
	Activation int `json:"activation"`
	After      int `json:"after"`
}

// Ends reports whether a hold is over. One that its case has restarted since is not.
func (e *End) Ends(h *Hold) bool {
	return e.Same(h) && (h.Activation == e.Activation || h.Activation < e.Activation && !e.Only)
}

// Same reports whether both are the hold of one task of one case.
func (h *Hold) Same(other *Hold) bool { return h.Case == other.Case && h.Task == other.Task }

// Over reports whether a hold has ended by the state of its case, of the task that began it, and of the task that ends it.
func (h *Hold) Over(c *state.Case, from, to *state.Task) bool {
	withdrawn := from.Generation == h.Activation && !from.State.Active() && from.State != state.TaskCompleted
	ended := to.Generation > h.After && !to.State.Active() && to.State != state.TaskDisabled
	return c.State.Final() || withdrawn || ended
}

// Cases lists the cases of holds, each once.
func Cases(holds []Hold) (cases []workitem.CaseID) {
	for i := range holds {
		if !slices.Contains(cases, holds[i].Case) {
			cases = append(cases, holds[i].Case)
		}
	}
	return cases
}

// has reports whether the case has the hold already, and notes its activations as they are now: a task that begins it once more goes on with it.
func (r *row) has(h *Hold) bool {
	i := slices.IndexFunc(r.Holds, func(other Hold) bool { return other.Same(h) })
	if i < 0 {
		return false
	}
	r.Holds[i].Activation, r.Holds[i].After = h.Activation, h.After
	return true
}
