package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) failures() *cobra.Command {
	var f store.FailureFilter
	var older, newer bound
	by := ""
	cmd := &cobra.Command{
		Use: "failures", Short: "group similar failures",
		Long: paragraph("Group the work items that failed for good (not replaced by a later attempt) by workflow, task and code: the " +
			"largest group first, each with the latest failed item."),
		Example: `  tasq failures --by code
  tasq failures --workflow order --newer 1d -o csv`,
		Args: exactly(),
	}
	flags := cmd.Flags()
	flags.StringVar(&by, "by", "", "group only by this `part`: code, task, workflow")
	flags.StringVar(&f.Workflow, "workflow", "", "only those of the workflow with this `name`")
	flags.StringVar(&f.Task, "task", "", "only those of the task with this `name`")
	flags.StringVar(&f.Code, "code", "", "only those with this `code`")
	flags.Var(&older, "older", "only those of items created at least this long ago (90s, 5m, 2h, 3d), or before this time (2026-11-22T12:00:00Z)")
	flags.Var(&newer, "newer", "only those of items created within this time, or since this time")
	w := watch{a: a, keys: []string{"workflow", "task", "code"}}
	w.flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(cmd, new(int), nil); err != nil {
			return err
		}
		if by != "" && store.FailuresBy[by] == nil {
			return usagef("--by %q: %s", by, spelling.Hint(by, []string{"code", "task", "workflow"}))
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return w.run(ctx, func(ctx context.Context, r store.Reader) error {
				f.Before, f.Since = older.time(now()), newer.time(now())
				return a.groupFailures(ctx, r, f, by)
			})
		})(cmd, args)
	}
	return cmd
}

func (a *app) groupFailures(ctx context.Context, r store.Reader, f store.FailureFilter, by string) error {
	if err := (&listing{a: a, workflow: f.Workflow, task: f.Task}).known(ctx, r); err != nil {
		return err
	}
	groups, all, err := store.Failures(ctx, store.ViewerOf(r), f)
	if err != nil {
		return err
	}
	if by != "" {
		groups = store.MergeFailures(groups, store.FailuresBy[by])
	}
	if !all {
		a.remark("only the newest %d failed items were looked at; use --newer or --workflow", store.MaxFailures)
	}
	return a.listFailures(groups)
}

func (a *app) listFailures(groups []store.FailureGroup) error {
	t := a.table("N", "CODE", "WORKFLOW", "TASK", "FIRST", "LAST", "ITEM")
	at := now()
	for _, g := range groups {
		if a.output == "json" {
			if err := a.object(record.Failures(g)); err != nil {
				return err
			}
			continue
		}
		t.add(number(int64(g.N)), g.Code, g.Workflow, g.Task, printable.Duration(at.Sub(g.First)), printable.Duration(at.Sub(g.Last)), g.Item.String())
	}
	if len(groups) == 0 {
		a.remark("no failures")
	}
	t.hide()
	return t.flush()
}

// queueName returns the name of a queue for a table.
func queueName(name string) string { return cmp.Or(name, "(default)") }
