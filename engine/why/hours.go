package why

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// OutOfHours finds which of some jobs that are due wait until the hours of their functions begin, so that they are not late.
func OutOfHours(ctx context.Context, r store.Reader, jobs []*state.Job, now time.Time) (map[workitem.JobID]bool, error) {
	hours, err := readHours(ctx, r)
	if err != nil || len(hours) == 0 {
		return nil, err
	}
	closed := make(map[workitem.JobID]bool)
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
		if c, _ := trees[j.Root].Job(j.ID); c != nil && !hoursOf(hours[c.Fingerprint], j).Contains(now) {
			closed[j.ID] = true
		}
	}
	return closed, nil
}

// hoursOf is the window of the function of a job.
func hoursOf(h workflow.Hours, j *state.Job) schedule.Window {
	if j.Kind == state.JobRun {
		return h.Tasks[j.Task]
	}
	return h.Calls[j.Name]
}

// readHours reads when the functions of all definitions may begin, by fingerprint.
func readHours(ctx context.Context, r store.Reader) (map[string]workflow.Hours, error) {
	defs, err := r.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]workflow.Hours)
	for _, d := range defs {
		h, err := workflow.HoursOf(d.Document)
		if err != nil {
			return nil, fmt.Errorf("definition %s of workflow %s: %w", d.Fingerprint, d.Name, err)
		}
		if len(h.Tasks)+len(h.Calls) > 0 {
			found[d.Fingerprint] = h
		}
	}
	return found, nil
}

// inHours puts off until the window of its function is open what a job does at a time, and reports whether it did.
func (v *visit) inHours(w *Wait, j *state.Job, at time.Time) bool {
	h := hoursOf(v.in.Hours[v.c.Fingerprint], j)
	open := h.Open(at)
	if !open.After(at) {
		return false
	}
	w.Until, w.Hours = open, h
	return true
}

// opens says when the hours of a function begin, in their zone: "08:00 Europe/Berlin, when its hours begin (08:00-18:00)". The day is
// left out if it is that of now.
func opens(w *Wait, now time.Time) string {
	zone := w.Hours.Location().String()
	at := w.Until.In(w.Hours.Location())
	layout := "Mon 2006-01-02 15:04"
	if !now.IsZero() && at.Format(time.DateOnly) == now.In(at.Location()).Format(time.DateOnly) {
		layout = "15:04"
	}
	return fmt.Sprintf("%s %s, when its hours begin (%s)", at.Format(layout), zone, w.Hours.Text())
}
