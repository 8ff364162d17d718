package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

func (a *app) jobs() *cobra.Command {
	l := listing{a: a, what: "jobs", countFlags: []string{"task"}}
	var f store.JobFilter
	var queue string
	var soon age
	cmd := &cobra.Command{
		Use: "jobs", Short: "list jobs: work for workers, timers and waits",
		Long: paragraph("List jobs: work for workers (run, call), timers, and waits before a retry (wake). Jobs are listed in the order of " +
			"their creation; only pending or running ones (--state) in due order."),
		Example: `  tasq jobs --state pending --due 1h
  tasq jobs --state failed -o json
  tasq jobs --counts`,
		Args: exactly(),
	}
	l.workflowFlag(cmd)
	l.flags(cmd)
	flags := cmd.Flags()
	flags.Var(words[state.JobState]{&f.States, state.ParseJobState, jobWords}, "state",
		"only those in these states: pending, running, waiting, done, canceled, failed")
	flags.StringVar(&l.task, "task", "", "only those of the task with this `name`, and of its work items")
	flags.StringVar(&f.Kind, "kind", "", "only those of this `kind`: run, timer, wake, call, start, handler, incident")
	flags.StringVar(&queue, "queue", "", "only those of the queue with this `name`; \"\" is the default queue")
	flags.Var(&soon, "due", "only those that are due within this time: 90s, 5m, 2h, 3d; 0s for those that are due now")
	l.caseFlag(cmd, ofCase)
	l.itemFlag(cmd)
	more := func() error {
		if flags.Changed("queue") {
			f.Queue = &queue
		}
		if f.Kind != "" && !slices.Contains(jobKinds, f.Kind) {
			return usagef("unknown --kind %q; %s", f.Kind, spelling.Hint(f.Kind, jobKinds))
		}
		return nil
	}
	l.runs(cmd, &f.Root, &f.Item, more, func(ctx context.Context, r store.Reader) error {
		if flags.Changed("due") {
			f.Due = now().Add(time.Duration(soon))
		}
		return l.jobs(ctx, r, f)
	})
	return cmd
}

var jobKinds = []string{state.JobRun, state.JobTimer, state.JobWake, state.JobCall, state.JobStart, state.JobHandler,
	state.JobIncident}

func (l *listing) jobs(ctx context.Context, r store.Reader, f store.JobFilter) (err error) {
	if err := l.known(ctx, r); err != nil {
		return err
	}
	if l.counts {
		return l.count(ctx, r, "job", inStates(f.States))
	}
	if f.Root, f.Case, err = within(ctx, r, f.Root); err != nil {
		return err
	}
	if !f.Item.IsZero() {
		if _, err := findItem(ctx, r, f.Item); err != nil {
			return err
		}
	}
	f.Workflow, f.Task = l.workflow, l.task
	at := now()
	names := l.a.namer(ctx, r)
	t := l.a.table("JOB", "CASE", "OF", "KIND", "STATE", "DUE IN", "ATTEMPT", "QUEUE", "OWNER", "FAILURE")
	read := func(p store.Page) ([]*state.Job, error) {
		f.Page = p
		return r.Jobs(ctx, f)
	}
	id := func(j *state.Job) string { return j.ID.String() }
	return rows(l, t, read, id, record.OfJob, func(j *state.Job) ([]string, error) {
		owner, err := ownerOf(ctx, r, j)
		if err != nil {
			return nil, err
		}
		in := ""
		if j.State.Live() && !j.Due.IsZero() { // a job without a time waits for an event or a child case
			in = printable.Until(j.Due, at)
		}
		kind := j.Kind
		if j.Name != "" {
			kind += " " + j.Name
		}
		cells := []string{names.job(j.ID), names.of(j.Case), owner, kind, j.State.String(), in, attempt(j.Attempt), j.Queue,
			j.Owner, l.a.failed(j.Failure)}
		return cells, names.err
	})
}

// ownerOf returns the name of what a job belongs to: a work item, an activation of a task, or the case.
func ownerOf(ctx context.Context, r store.Finder, j *state.Job) (string, error) {
	switch {
	case !j.Item.IsZero():
		items, err := r.Items(ctx, store.ItemFilter{ID: j.Item})
		if err != nil || len(items) == 0 {
			return j.Task, err
		}
		return items[0].Label(), nil
	case j.Task != "":
		return j.Task, nil
	}
	return "case", nil
}
