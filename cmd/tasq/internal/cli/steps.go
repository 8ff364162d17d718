package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var stepWords = []string{"waiting", "done", "failed", "canceled"}

func (a *app) steps() *cobra.Command {
	l := listing{a: a, what: "steps"}
	var f store.StepFilter
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
	l.caseFlag(cmd, ofCase)
	l.itemFlag(cmd)
	l.runs(cmd, &f.Root, &f.Item, nil, func(ctx context.Context, r store.Reader) error { return l.steps(ctx, r, f) })
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
	labels := make(map[workitem.ID]string)
	at := now()
	t := l.a.table("OF", "STEP", "KIND", "STATE", "TRY", "FOR", "DUE IN", "RESULT")
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
		result := printable.Brief(record.WithoutSecret(s).Result, 40)
		switch {
		case s.Limited():
			result = "waits for " + s.Needs()
		case s.Failure != nil:
			result = failed(s.Failure)
		}
		return []string{of, s.Name, string(s.Kind), state, number(int64(s.Attempt)), s.Target, in, result}, nil
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
