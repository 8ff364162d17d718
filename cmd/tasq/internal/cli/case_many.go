package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// helpOfMany is the part of the help that manyCases adds.
const helpOfMany = "Without a CASE, the cases that the flags select are only counted; with --all, each gets its own command; a refusal is " +
	"reported and does not affect the others."

// manyCases lets a command that repairs one case act on all cases that flags select, if it has no argument.
func (a *app) manyCases(cmd *cobra.Command, q *asking, kind workflow.Kind) {
	var f store.CaseFilter
	var older, newer bound
	all, suspended := false, kind == workflow.KindSuspend
	cmd.Use = string(kind) + " [CASE]"
	cmd.Args = cobra.MaximumNArgs(1)
	flags := cmd.Flags()
	flags.StringVar(&f.Workflow, "workflow", "", "without a CASE: only those of the workflow with this `name`")
	flags.StringVar(&f.Key, "business-key", "", "without a CASE: only those with this business `key`")
	flags.Var((*labels)(&f.Labels), "label", "without a CASE: only those with this label, as `name=value`; may be repeated")
	flags.Var(&older, "older", "without a CASE: only those started at least this long ago (90s, 5m, 2h, 3d), or before this time")
	flags.Var(&newer, "newer", "without a CASE: only those started within this time, or since this time")
	flags.BoolVar(&all, "all", false, "act on all matches")
	if kind == workflow.KindResume {
		codeFlags(cmd, &f.Code, "without a CASE: only those that failed with this `code`", "without a CASE: only those that failed without a code")
		flags.BoolVar(&suspended, "suspended", false, "without a CASE: those that are suspended, instead of those that failed")
	}
	one := cmd.RunE
	many := a.run(func(ctx context.Context, _ []string) error {
		if kind == workflow.KindCancel && q.data.json != nil {
			return usagef("--data is the reason of a single case; give --reason for those that the flags select")
		}
		if q.command.Key != "" {
			return usagef("--key is the idempotency key of a command on a single case; cases are selected by --business-key")
		}
		q.command.Kind = kind
		f.Before, f.Since = older.time(now()), newer.time(now())
		var targets []string
		err := a.view(ctx, func(r store.Reader) (err error) {
			if err := (&listing{a: a, workflow: f.Workflow}).known(ctx, r); err != nil {
				return err
			}
			switch {
			case kind == workflow.KindCancel:
				targets, err = live(ctx, store.ViewerOf(r), f)
			case suspended:
				targets, err = bulk.Live(ctx, store.ViewerOf(r), f, kind == workflow.KindResume)
			default:
				targets, err = bulk.Failed(ctx, store.ViewerOf(r), f, "")
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.countFirst(ctx, q, all, targets, "case")
	})
	cmd.RunE = oneOrMany(one, many)
}

// live returns the live root cases, suspended or not, as targets of a cancellation.
func live(ctx context.Context, v store.Viewer, f store.CaseFilter) ([]string, error) {
	active, err := bulk.Live(ctx, v, f, false)
	if err != nil {
		return nil, err
	}
	suspended, err := bulk.Live(ctx, v, f, true)
	return append(active, suspended...), err
}

// oneOrMany calls one for an argument, and many without one.
func oneOrMany(one, many func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return many(cmd, args)
		}
		return one(cmd, args)
	}
}
