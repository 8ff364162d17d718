package view

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// This file has the checks of the doctor about what runs: late work, and the limits of functions.

// overdue lists late jobs, without those that wait as their definition says.
func (s *Site) overdue(r *Request) ([]*state.Job, error) {
	jobs, err := r.R.Jobs(r, store.JobFilter{States: []state.JobState{state.JobPending, state.JobWaiting}, Due: r.Now.Add(-10 * time.Second),
		Page: store.Page{Limit: pageSize}})
	if err != nil {
		return nil, err
	}
	waits, err := why.NotLate(r, r.R, jobs, r.Now)
	return slices.DeleteFunc(jobs, func(j *state.Job) bool { return waits[j.ID] }), err
}

// overdueTable is the table of late jobs.
func (s *Site) overdueTable(r *Request) (*Table, error) {
	t := &Table{ID: "overdue", Title: "Overdue work", Head: []string{"job", "kind", "of", "case", "state", "due", "attempt", "queue", "worker", "failure"},
		Note: "Possible causes: no program with its workflow is running, its queue has no free worker, or the store fails."}
	jobs, err := s.overdue(r)
	for _, j := range jobs {
		s.jobRow(t, r.Mask.Job(j), true)
	}
	return t, err
}

// ownWork lists late work as the program that runs the functions knows it.
func (s *Site) ownWork(r *Request, add addCheck) {
	late := func(name string, n int, oldest time.Time, more, about string) {
		add(name, "warn", fmt.Sprintf("%d due and not begun, the first since %s%s", n, printable.Time(oldest), more), about)
	}
	if b, ok := s.Backend.(source.Inspector); ok {
		for _, o := range b.Overdue() {
			name, about := "queue "+queueName(o.Queue), s.dueIn(o.Queue)
			if o.Timers {
				name, about = "timers", s.Link("/jobs", "kind", state.JobTimer, "due", "0s")
			}
			late(name, o.Due, o.Oldest, "", about)
		}
		return
	}
	known, _ := r.Context.Value(limitsKey{}).(limitsAnswer)
	for _, q := range known.queues {
		more := fmt.Sprintf("; %d of %s run", q.Running, counted(q.Workers, "worker"))
		if q.Paused {
			more = "; it is paused"
		}
		if q.Waiting > 0 {
			late("queue "+queueName(q.Queue), q.Waiting, q.Oldest, more, s.dueIn(q.Queue))
		}
	}
}

// dueIn returns the address of the due jobs of a queue.
func (s *Site) dueIn(queue string) string {
	return s.listLink("/jobs", url.Values{"queue": {queue}, "state": {state.JobPending.String()}, "due": {"0s"}})
}

// limitsInUse lists the limits of functions for which work waits.
func (s *Site) limitsInUse(r *Request, add addCheck) error {
	page := s.Link("/limits")
	known, _ := r.Context.Value(limitsKey{}).(limitsAnswer)
	if errors.Is(known.err, store.ErrReadOnly) || errors.Is(known.err, store.ErrUnavailable) {
		add("limits", "pending", "not known: only the program that runs the functions knows their usage; start it, and tasq serve with --act", page)
		return nil
	}
	if known.err != nil || len(known.all) == 0 {
		return known.err
	}
	all, err := why.ReadLimits(r, r.R, known.all)
	if err != nil {
		return err
	}
	waits := false
	for i := range all {
		if l := &all[i]; l.Waiting > 0 {
			waits = true
			add("limit "+l.Limit.Name, "warn", waitingFor(l), page)
		}
	}
	if !waits {
		add("limits", "good", "no work waits for one", page)
	}
	return nil
}

// waitingFor says how many jobs wait for a limit, what is in use of it, and when there is more.
func waitingFor(l *workflow.LimitInfo) string {
	text := counted(l.Waiting, "job") + " in line"
	switch {
	case l.Limit.N == 0:
		return text + "; it is set to 0"
	case l.Limit.Algorithm != limit.CircuitBreaker && l.Keys <= 1:
		text += fmt.Sprintf("; %d of %d in use", l.Used, l.Limit.N)
	}
	return text + "; free " + l.NextFree()
}
