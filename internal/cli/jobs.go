package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

func (a *app) jobs() *cobra.Command {
	l := listing{a: a, what: "jobs", apart: []string{"task"}}
	var f store.JobFilter
	var of, item, queue string
	var soon age
	cmd := &cobra.Command{
		Use: "jobs", Short: "list jobs: work that runs outside, timers and waits",
		Long: paragraph("List jobs: the work that workers do (run, call), timers, and waits before another attempt (wake). " +
			"Jobs are listed in the order of their creation, and if only pending or running ones are asked for, " +
			"in due order."),
		Example: `  tasq jobs --state pending --due 1h
  tasq jobs --state failed -o json
  tasq jobs --counts`,
		Args: exactly(),
	}
	l.flags(cmd)
	flags := cmd.Flags()
	flags.Var(words[store.JobState]{&f.States, store.ParseJobState, jobWords}, "state",
		"only those in these states: pending, running, waiting, done, canceled, failed")
	flags.StringVar(&l.task, "task", "", "only those of the task with this `name`, and of its work items")
	flags.StringVar(&f.Kind, "kind", "", "only those of this `kind`: run, timer, wake, call, start, tell")
	flags.StringVar(&queue, "queue", "", "only those of the queue with this `name`; \"\" is the default queue")
	flags.Var(&soon, "due", "only those that are due within this time: 90s, 5m, 2h, 3d; 0s for those that are due now")
	flags.StringVar(&of, "case", "",
		"only those of the case with this `id`, and, if it is a root case, of its descendants")
	flags.StringVar(&item, "item", "", "only those of the work item with this `id`")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := l.checkJobs(cmd, f.Kind); err != nil {
			return err
		}
		if of != "" {
			if f.Root, err = parseID(workitem.ParseCaseID, "case", of); err != nil {
				return err
			}
		}
		if item != "" {
			if f.Item, err = parseID(workitem.ParseID, "work item", item); err != nil {
				return err
			}
		}
		if cmd.Flags().Changed("queue") {
			f.Queue = &queue
		}
		if cmd.Flags().Changed("due") {
			f.Due = now().Add(time.Duration(soon))
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return a.view(ctx, func(r store.Reader) error { return l.jobs(ctx, r, f) })
		})(cmd, args)
	}
	return cmd
}

var jobKinds = []string{store.JobRun, store.JobTimer, store.JobWake, store.JobCall, store.JobStart, store.JobTell}

func (l *listing) checkJobs(cmd *cobra.Command, kind string) error {
	if err := l.check(cmd); err != nil {
		return err
	}
	for _, k := range jobKinds {
		if kind == k || kind == "" {
			return nil
		}
	}
	return usagef("--kind %q is not one; %s", kind, hint(kind, jobKinds))
}

func (l *listing) jobs(ctx context.Context, r store.Reader, f store.JobFilter) error {
	known, err := namesOf(ctx, r)
	if err == nil {
		err = known.check(l.workflow, l.task)
	}
	if err != nil {
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
	t := l.a.table("JOB", "CASE", "OF", "KIND", "STATE", "DUE IN", "DUE", "ATTEMPT", "QUEUE", "OWNER", "FAILURE")
	read := func(p store.Page) ([]*store.Job, error) {
		f.Page = p
		return r.Jobs(ctx, f)
	}
	return pages(l, read, func(j *store.Job) string { return j.ID.String() }, func(rows []*store.Job) error {
		for _, j := range rows {
			if l.a.output == "json" {
				if err := l.a.object(rowOfJob(j)); err != nil {
					return err
				}
				continue
			}
			owner, err := ownerOf(ctx, r, j)
			if err != nil {
				return err
			}
			in := ""
			if j.State.Live() {
				in = ago(j.Due.Sub(at))
			}
			kind := j.Kind
			if j.Name != "" {
				kind += " " + j.Name
			}
			if j.Due.IsZero() {
				in = "" // only an event or a child case ends its wait
			}
			t.add(j.ID.String(), j.Case.String(), owner, kind, j.State.String(), in, iso(j.Due), number(int64(j.Attempt)),
				j.Queue, j.Owner, failed(j.Failure))
		}
		return t.flush()
	})
}

// ownerOf names what a job belongs to: a work item, an activation of a task, or the case.
func ownerOf(ctx context.Context, r store.Reader, j *store.Job) (string, error) {
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
