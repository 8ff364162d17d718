package quota

import (
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// End ends a hold that was begun by the given activation or, unless Only is set, by an earlier one.
type End struct {
	Hold
	Only bool
}

// Hold is an amount of a limit that a case keeps over several tasks. Its case and task identify it.
type Hold struct {
	Root workitem.CaseID `json:"root"`
	Case workitem.CaseID `json:"case"`
	Task string          `json:"task"` // that began it
	N    int64           `json:"n"`

	// Activation is the activation of Task that began the hold. After is the number of activations that the last task
	// of the hold had had by then. With the state of the case they decide whether the hold has ended; see Over.
	Activation int `json:"activation"`
	After      int `json:"after"`
}

// Ends reports whether e ends the hold h. It does not if a later activation has begun the hold again.
func (e *End) Ends(h *Hold) bool {
	return e.Same(h) && (h.Activation == e.Activation || h.Activation < e.Activation && !e.Only)
}

// Same reports whether both are the hold of one task of one case.
func (h *Hold) Same(other *Hold) bool { return h.Case == other.Case && h.Task == other.Task }

// Over reports whether a hold has ended by the state of its case c, its first task from, and its last task to: the case
// has ended, the first task was withdrawn without completing, or the last task has ended in an activation after those
// that the hold began with.
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

// has reports whether the case has the hold already, and updates its activations: a task in a loop that begins the hold
// again keeps it.
func (r *row) has(h *Hold) bool {
	i := slices.IndexFunc(r.Holds, func(other Hold) bool { return other.Same(h) })
	if i < 0 {
		return false
	}
	r.Holds[i].Activation, r.Holds[i].After = h.Activation, h.After
	return true
}
