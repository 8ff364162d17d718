package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// failureRow is the JSON form of a group of failures.
type failureRow struct {
	Workflow string      `json:"workflow,omitempty"`
	Task     string      `json:"task,omitempty"`
	Code     string      `json:"code,omitempty"`
	N        int         `json:"n"`
	First    time.Time   `json:"first"`
	Last     time.Time   `json:"last"`
	Item     workitem.ID `json:"item"`
}

// failuresBy are the values of --by, with the fields that each groups by.
var failuresBy = map[string]func(store.FailureGroup) store.FailureGroup{
	"code": func(g store.FailureGroup) store.FailureGroup { return store.FailureGroup{Code: g.Code} },
	"task": func(g store.FailureGroup) store.FailureGroup {
		return store.FailureGroup{Workflow: g.Workflow, Task: g.Task}
	},
	"workflow": func(g store.FailureGroup) store.FailureGroup { return store.FailureGroup{Workflow: g.Workflow} },
}

func (a *app) failures() *cobra.Command {
	var f store.FailureFilter
	var older, newer age
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
	flags.Var(&older, "older", "only those of items created at least this long ago: 90s, 5m, 2h, 3d")
	flags.Var(&newer, "newer", "only those of items created within this time")
	cmd.RunE = a.run(func(ctx context.Context, _ []string) error {
		if by != "" && failuresBy[by] == nil {
			return usagef("--by %q: %s", by, spelling.Hint(by, []string{"code", "task", "workflow"}))
		}
		f.Before, f.Since = older.before(now()), newer.before(now())
		return a.view(ctx, func(r store.Reader) error {
			if err := (&listing{a: a, workflow: f.Workflow, task: f.Task}).known(ctx, r); err != nil {
				return err
			}
			groups, all, err := store.Failures(ctx, store.ViewerOf(r), f)
			if err != nil {
				return err
			}
			if by != "" {
				groups = store.MergeFailures(groups, failuresBy[by])
			}
			if !all {
				a.remark("only the newest %d failed items were looked at; use --newer or --workflow", store.MaxFailures)
			}
			return a.listFailures(groups)
		})
	})
	return cmd
}

func (a *app) listFailures(groups []store.FailureGroup) error {
	t := a.table("N", "CODE", "WORKFLOW", "TASK", "FIRST", "LAST", "ITEM")
	at := now()
	for _, g := range groups {
		if a.output == "json" {
			if err := a.object(failureRow(g)); err != nil {
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
