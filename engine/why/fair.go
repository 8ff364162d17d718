package why

import (
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
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
	if v.hasKey(j) && w.Ahead > 0 {
		w.Fair, w.Ahead = new(Fair), 0
	}
}

// hasKey reports whether the function of a job has fairness keys, by what its engine has stored.
func (v *visit) hasKey(j *state.Job) bool {
	of := v.in.Takes[v.c.Fingerprint]
	names, name := of.FairCalls, j.Name
	if j.Kind == state.JobRun {
		names, name = of.FairTasks, j.Task
	}
	return slices.Contains(names, name)
}

// mayBePaused says that the key of a job can be a paused one.
func mayBePaused(w *Wait) string {
	if w.MayBePaused == 0 {
		return ""
	}
	names := make([]string, len(w.MayBePausedKeys))
	for i, key := range w.MayBePausedKeys {
		names[i] = printable.Line(key)
	}
	which := strings.Join(names, ", ")
	if more := w.MayBePaused - len(names); more > 0 {
		which += " and " + printable.Plural(more, "other")
	}
	if w.MayBePaused == 1 {
		return " (key " + which + " of the queue is paused; only the program that runs the job knows whether that is its key)"
	}
	return " (keys " + which + " of the queue are paused; only the program that runs the job knows whether its key is one of them)"
}

// maxPausedKeys is how many keys are named that may be that of a job.
const maxPausedKeys = 5

// keyPaused records that a job waits because its key is paused. A process without the engine in which the job waits
// does not know the key, and records only which of the queue are paused.
func (v *visit) keyPaused(w *Wait, j *state.Job) bool {
	paused := v.in.Paused[j.Queue].Keys
	if len(paused) == 0 {
		return false
	}
	if v.in.KeyPaused == nil {
		if v.hasKey(j) {
			w.MayBePaused = len(paused)
			for _, key := range slices.Sorted(maps.Keys(paused))[:min(len(paused), maxPausedKeys)] {
				w.MayBePausedKeys = append(w.MayBePausedKeys, v.in.shown("queue", j.Queue, key))
			}
		}
		return false
	}
	key, ok := v.in.KeyPaused(j.Queue, j.ID)
	if ok {
		by := paused[key]
		w.Paused, w.PausedKey = &by, v.in.shown("queue", j.Queue, key)
	}
	return ok
}
