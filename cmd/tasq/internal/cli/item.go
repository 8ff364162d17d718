package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// item is the command "item".
func (a *app) item() *cobra.Command {
	cmd := &cobra.Command{
		Use: "item", Short: "start, complete, fail, cancel, reset, retry or skip a work item", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	for _, action := range []struct {
		do          workitem.Action
		short, more string
		data        string
		ends        bool // the action may complete the task
	}{
		{workitem.Start, "start a work item", "The item must be initialized.", "payload of the action", false},
		{workitem.Complete, "complete a work item", "The item must be started. The policy of its task decides what happens next.",
			"output of the item", true},
		{workitem.Fail, "fail a work item", "The item must be started. --data has the reason: an object with code, message, details and " +
			"retryable (default true). A process with a retry policy then creates a new item.",
			"the failure", true},
		{workitem.Cancel, "cancel a work item", "The item must not be final. --data has the reason: an object with code, message and details.", "the reason", true},
		{workitem.Reset, "return a started work item to initialized", "Its jobs are canceled; a task with code runs it again.",
			"payload of the action", false},
	} {
		sub := a.itemAction(action.do, action.data, action.ends)
		sub.Short = action.short
		many := ""
		if slices.Contains(bulk.ItemActions, action.do) {
			many = helpOfManyItems + helpOfBulk
		}
		sub.Long = paragraph(strings.ToUpper(action.short[:1]) + action.short[1:] + ". " + action.more + many)
		cmd.AddCommand(sub)
	}
	cmd.AddCommand(a.itemRetry(), a.itemSkip())
	return cmd
}

func (a *app) itemAction(do workitem.Action, what string, ends bool) *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use:  do.String() + " ITEM",
		Args: exactly("the id of a work ITEM"),
	}
	q.flags(cmd, what)
	if ends {
		cmd.Flags().StringSliceVar(&q.command.Route, "to", nil,
			"`names` of the tasks or conditions to which the task's xor- or or-split routes, if this ends the task")
	}
	cmd.RunE = a.run(func(ctx context.Context, args []string) (err error) {
		q.command.Kind, q.command.Action = workflow.KindAct, do
		if q.about = args[0]; checkID(itemIDs, q.about) != nil {
			return checkID(itemIDs, q.about)
		}
		if _, err = o.do(ctx, q); err != nil || q.left() {
			return err
		}
		return a.view(ctx, func(r store.Reader) error {
			it, err := findItem(ctx, r, q.command.Item)
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.object(record.OfItem(it))
			}
			return a.say("work item %s (%s/%s) is %s", it.ID, it.Workflow, it.Label(), it.State)
		})
	})
	if slices.Contains(bulk.ItemActions, do) {
		a.manyItems(cmd, q, do)
		cmd.Example = "  tasq item " + do.String() + " --workflow order --task pack --older 2d\n" +
			"  tasq item " + do.String() + " --workflow order --task pack --older 2d --all --reason \"the shift has ended\""
	}
	return cmd
}
