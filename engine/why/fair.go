package why

import (
	"slices"

	"github.com/tasq-dev/tasq/store/state"
)

// takesTurns records the position of a job in a fair queue. The number of earlier due jobs is meaningless then. A
// process without the engine in which the job waits knows only that the queue is fair.
func (v *visit) takesTurns(w *Wait, j *state.Job) {
	if v.in.Fair != nil {
		if f, ok := v.in.Fair(j.ID); ok {
			w.Fair, w.Ahead = &f, f.Ahead
		}
		return
	}
	of := v.in.Takes[v.c.Fingerprint]
	names, name := of.FairCalls, j.Name
	if j.Kind == state.JobRun {
		names, name = of.FairTasks, j.Task
	}
	if slices.Contains(names, name) && w.Ahead > 0 {
		w.Fair, w.Ahead = new(Fair), 0
	}
}
