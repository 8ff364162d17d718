package why

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// batchOf returns the batch of a job; false if the job runs alone, as one that has crashed its process does.
func batchOf(batches map[string]workflow.Batching, j *state.Job) (b workflow.Batching, ok bool) {
	if j.Kind == state.JobRun && j.Crashes == 0 {
		b, ok = batches[j.Task]
	}
	return b, ok
}

// gathers reports whether a due job waits for the other jobs of its batch, and records that in the wait. The engine knows
// how many are in the line. Any other process assumes that the job is the first in it, which gives the latest time at
// which the batch starts.
func (v *visit) gathers(w *Wait, j *state.Job) bool {
	b, ok := batchOf(v.in.Batches[v.c.Fingerprint], j)
	if !ok {
		return false
	}
	there, due := 0, j.Due.Add(b.Wait)
	if v.in.Gathered != nil {
		if there, due = v.in.Gathered(j.ID); there == 0 {
			return false
		}
	}
	if there >= b.Most || !due.After(v.in.Now) {
		return false
	}
	w.Until, w.Batch = due, &Batch{Most: b.Most, There: there}
	return true
}

// batch describes the wait for a batch: "a batch of 10 with 3 so far, and begins at the latest in 4s".
func batch(w *Wait, now time.Time) string {
	line := fmt.Sprintf("a batch of %d", w.Batch.Most)
	if w.Batch.There > 0 {
		line += fmt.Sprintf(" with %d so far", w.Batch.There)
	}
	if when := at(w.Until, now); when != "" {
		line += ", and begins at the latest" + when
	}
	return line
}
