package why

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// NotLate returns which of the given due jobs wait as their definition says, and so are not late: for the time window
// of their functions, or for the other jobs of their batch.
func NotLate(ctx context.Context, r store.Reader, jobs []*state.Job, now time.Time) (map[workitem.JobID]bool, error) {
	hours, batches, err := readConditions(ctx, r)
	if err != nil || len(hours)+len(batches) == 0 {
		return nil, err
	}
	waits := make(map[workitem.JobID]bool)
	trees := make(map[workitem.CaseID]*state.Tree)
	for _, j := range jobs {
		if !byWorker(j) {
			continue
		}
		if trees[j.Root] == nil {
			if trees[j.Root], err = r.Tree(ctx, j.Root); err != nil {
				return nil, fmt.Errorf("case %s: %w", j.Root, err)
			}
		}
		c, _ := trees[j.Root].Job(j.ID)
		if c == nil {
			continue
		}
		batch, gathers := batchOf(batches[c.Fingerprint], j)
		if gathers && j.Due.Add(batch.Wait).After(now) || !hoursOf(hours[c.Fingerprint], j).Contains(now) {
			waits[j.ID] = true
		}
	}
	return waits, nil
}

// hoursOf returns the time window of the function of a job.
func hoursOf(h workflow.Hours, j *state.Job) schedule.Window {
	if j.Kind == state.JobRun {
		return h.Tasks[j.Task]
	}
	return h.Calls[j.Name]
}

// The documents of the definitions are read, and not the definitions: a process without the program has no other source
// of them, and an engine gives the same answer.

// readConditions reads the time windows and batches of all definitions, by fingerprint.
func readConditions(ctx context.Context, r store.Reader) (map[string]workflow.Hours, map[string]map[string]workflow.Batching, error) {
	defs, err := r.Definitions(ctx)
	if err != nil {
		return nil, nil, err
	}
	hours, batches := make(map[string]workflow.Hours), make(map[string]map[string]workflow.Batching)
	for _, d := range defs {
		h, err := workflow.HoursOf(d.Document)
		b, failed := workflow.BatchesOf(d.Document)
		if err := errors.Join(err, failed); err != nil {
			return nil, nil, fmt.Errorf("definition %s of workflow %s: %w", d.Fingerprint, d.Name, err)
		}
		if len(h.Tasks)+len(h.Calls) > 0 {
			hours[d.Fingerprint] = h
		}
		if len(b) > 0 {
			batches[d.Fingerprint] = b
		}
	}
	return hours, batches, nil
}

// inHours moves the time of a wait to the opening of the window of its function, and reports whether it did:
//
//	hours 08:00-18:00      due 14:00      starts at 14:00       unchanged
//	                       due 23:00      starts at 08:00       moved
func (v *visit) inHours(w *Wait, j *state.Job, at time.Time) bool {
	h := hoursOf(v.in.Hours[v.c.Fingerprint], j)
	open := h.Open(at)
	if !open.After(at) {
		return false
	}
	w.Until, w.Hours = open, h
	return true
}

// opens says when the window of a function opens, in its time zone: "08:00 Europe/Berlin, when its hours begin
// (08:00-18:00)". The day is left out if it is today.
func opens(w *Wait, now time.Time) string {
	zone := w.Hours.Location().String()
	at := w.Until.In(w.Hours.Location())
	layout := "Mon 2006-01-02 15:04"
	if !now.IsZero() && at.Format(time.DateOnly) == now.In(at.Location()).Format(time.DateOnly) {
		layout = "15:04"
	}
	return fmt.Sprintf("%s %s, when its hours begin (%s)", at.Format(layout), zone, w.Hours.Text())
}
