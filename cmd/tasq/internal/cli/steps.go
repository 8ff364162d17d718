package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var stepKinds = []string{"do", "tx", "sleep", "event", "case", "token", "choice", "value"}

var stepWords = []string{"waiting", "done", "failed", "canceled"}

func (a *app) steps() *cobra.Command {
	l := listing{a: a, what: "steps"}
	var f store.StepFilter
	job := ""
	cmd := &cobra.Command{
		Use: "steps", Short: "list durable steps: results and waits",
		Long: paragraph("List the steps that jobs have recorded, oldest first: function calls (do, tx), sleeps, waits for events, child " +
			"cases, tokens, choices and remembered values."),
		Example: `  tasq steps --item 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq steps --state waiting -o json`,
		Args: exactly(),
	}
	l.pageFlags(cmd)
	flags := cmd.Flags()
	flags.Var(words[workitem.StepState]{&f.States, workitem.ParseStepState, stepWords}, "state",
		"only those in these states: waiting, done, failed, canceled")
	flags.StringVar((*string)(&f.Kind), "kind", "", "only those of this `kind`: "+strings.Join(stepKinds, ", "))
	flags.StringVar(&f.Target, "target", "", "only those about this workflow, event or topic, by `name`")
	flags.StringVar(&job, "job", "", "only those of the job with this `id`")
	l.caseFlag(cmd, ofCase)
	l.itemFlag(cmd)
	l.runs(cmd, &f.Root, &f.Item, func() error {
		switch {
		case f.Kind != "" && !slices.Contains(stepKinds, string(f.Kind)):
			return usagef("unknown --kind %q; %s", f.Kind, spelling.Hint(string(f.Kind), stepKinds))
		case job == "":
			return nil
		}
		return checkID(jobIDs, job)
	}, func(ctx context.Context, r store.Reader) error {
		if err := resolve(ctx, r, jobIDs, job, &f.Job); err != nil {
			return err
		}
		return l.steps(ctx, r, f)
	})
	return cmd
}

func (l *listing) steps(ctx context.Context, r store.Finder, f store.StepFilter) (err error) {
	if f.Root, f.Case, err = within(ctx, r, f.Root); err != nil {
		return err
	}
	if !f.Item.IsZero() {
		if _, err := findItem(ctx, r, f.Item); err != nil {
			return err
		}
	}
	if !f.Job.IsZero() {
		jobs, err := r.Jobs(ctx, store.JobFilter{ID: f.Job})
		if err == nil && len(jobs) == 0 {
			err = exit(ExitNotFound, "job %s: not found; tasq jobs lists them", f.Job)
		}
		if err != nil {
			return err
		}
	}
	labels := make(map[workitem.ID]string)
	at := now()
	t := l.a.table("OF", "STEP", "KIND", "STATE", "ATTEMPT", "FOR", "DUE IN", "RESULT")
	read := func(p store.Page) ([]*workitem.Step, error) {
		f.Page = p
		return r.Steps(ctx, f)
	}
	id := func(s *workitem.Step) string { return s.ID.String() }
	return rows(l, t, read, id, record.OfStep, func(s *workitem.Step) ([]string, error) {
		of, err := stepOwner(ctx, r, s, labels)
		if err != nil {
			return nil, err
		}
		state := s.State.String()
		if s.Copied {
			state += " before" // recorded by an earlier attempt or run that this one continues
		}
		in := ""
		if s.State == workitem.StepWaiting && !s.Due.IsZero() && !s.Limited() {
			in = printable.Duration(s.Due.Sub(at))
		}
		result := l.a.brief(record.WithoutSecret(s).Result, 40)
		switch {
		case s.Limited():
			result = "waits for " + s.Needs()
		case s.Failure != nil:
			result = l.a.failed(s.Failure)
		}
		return []string{of, s.Name, string(s.Kind), state, attempt(s.Attempt), s.Target, in, result}, nil
	})
}

// stepOwner returns the work item whose run recorded a step, or else the job.
func stepOwner(ctx context.Context, r store.Finder, s *workitem.Step, labels map[workitem.ID]string) (string, error) {
	if s.Item.IsZero() {
		return s.Job.String(), nil
	}
	if label, known := labels[s.Item]; known {
		return label, nil
	}
	it, err := findItem(ctx, r, s.Item)
	if err != nil {
		return "", err
	}
	labels[s.Item] = it.Workflow + "/" + it.Label()
	return labels[s.Item], nil
}
