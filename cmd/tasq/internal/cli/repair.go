package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// repairing declares the flags of repair commands.
func (q *asking) repairing(cmd *cobra.Command, what string) {
	q.flags(cmd, what)
}

// reasoned declares the flags of commands that need only a reason.
func (q *asking) reasoned(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.command.Key, "key", "",
		"idempotency `key`: a second command with it does nothing, and returns the first result")
	f.StringVar(&q.command.Actor, "by", "", "`name` of the actor, for the history (default: the environment variable USER)")
	f.StringVar(&q.reason, "reason", "", "`reason`, for the history")
	q.dryRunFlag(cmd)
	q.patience(cmd)
}

func (a *app) caseSuspend() *cobra.Command {
	cmd, q := a.caseRepair(workflow.KindSuspend, "is suspended")
	cmd.Short = "suspend a case: no work of it starts until it is resumed"
	cmd.Long = paragraph("Suspend a case and its child cases: due jobs and timers wait, and no work item can be started. Running work may " +
		"end. Events are kept. tasq case resume resumes the case; then everything that became due meanwhile begins. " + helpOfMany + " Cases that are started later are not suspended; see tasq workflow suspend.")
	cmd.Example = `  tasq case suspend 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --reason "the customer asked to wait"
  tasq case suspend --workflow order --all --reason "the supplier is down"`
	q.reasoned(cmd)
	a.manyCases(cmd, q, workflow.KindSuspend)
	return cmd
}

func (a *app) caseResume() *cobra.Command {
	cmd, q := a.caseRepair(workflow.KindResume, "goes on")
	cmd.Short = "resume a suspended case, or a failed one where it failed"
	cmd.Long = paragraph("Resume a case. A suspended case begins its due work. A failed case resumes where it failed: each work item that " +
		"failed, or that was canceled because of the failure, is replaced by a new one; completed work stays completed. Cases above " +
		"it that failed with it resume, too. --data is another input for the work item that failed, if it is only one. " + helpOfPolicy + " " + helpOfMany)
	cmd.Example = `  tasq case resume 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --reason "the supplier is back"
  tasq case resume 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --data '{"account":"2"}'
  tasq case resume --code supplier-down --workflow order --all --reason "the supplier is back"
  tasq case resume --suspended --workflow order --all`
	q.repairing(cmd, "input of the new work item")
	a.manyCases(cmd, q, workflow.KindResume)
	q.policyFlags(cmd)
	return cmd
}

// caseRepair returns a command that repairs a case, and shows the case; done is the verb of the message.
func (a *app) caseRepair(kind workflow.Kind, done string) (*cobra.Command, *asking) {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{Use: string(kind) + " CASE", Args: exactly("the id or business key of a CASE")}
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind = kind
		if q.about = args[0]; checkID(caseIDs, q.about) != nil {
			return checkID(caseIDs, q.about)
		}
		result, err := o.do(ctx, q)
		if err != nil || q.left() {
			return err
		}
		return a.view(ctx, func(r store.Reader) error {
			c, err := findCase(ctx, r, result.Case)
			if err != nil {
				return err
			}
			again := caseFailedAgain(ctx, r, c)
			switch {
			case a.output == "json":
				return errors.Join(a.object(record.OfCase(c)), again)
			case again != nil:
				return again
			}
			word := done
			if s := c.Suspended; s != nil && kind == workflow.KindSuspend {
				word += suspendedBy(s)
			}
			return a.say("case %s of %s %s: it is %s", c.ID, c.Workflow, word, c.State)
		})
	})
	return cmd, q
}

func (a *app) caseMove() *cobra.Command {
	cmd, q := a.caseRepair(workflow.KindMove, "is corrected")
	cmd.Use = "move CASE FROM TO"
	cmd.Short = "move a token of a case, or continue it from another task"
	cmd.Long = paragraph("Change the state of a case. FROM is a condition that holds a token, or an enabled or started task, which is " +
		"canceled with its work; TO is a condition, or the task to enable. A failed case is resumed for that: move from the failed " +
		"task to an earlier one to continue from there. A move after which the case could not end is refused, with a run that shows " +
		"it; --force does it all the same.")
	cmd.Example = `  tasq case move 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 review draft --reason "the wrong draft"
  tasq case move 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 'draft->review' draft --dry-run`
	cmd.Args = exactly("the id or business key of a CASE", "the condition or task FROM which", "the condition or task TO which")
	q.reasoned(cmd)
	cmd.Flags().BoolVar(&q.command.Force, "force", false, "move even if the case could not end afterwards")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q.command.From, q.command.To = args[1], args[2]
		return run(cmd, args)
	}
	return cmd
}

func (a *app) caseFork() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use: "fork CASE", Short: "start a new case from a past state of another one",
		Long: paragraph("Start a new case from the state of a root case and its child cases at a position of the journal, and print its " +
			"id. Completed work is completed in the new case, too, and is not repeated: no callback is called, and steps keep their " +
			"results. Work that was active begins again, with the time that was left. tasq history shows the positions; rows in the " +
			"program's own tables are not copied."),
		Example: `  tasq case fork 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --at 17 --reason "what if it is rejected"`,
		Args:    exactly("the id or business key of a CASE"),
	}
	q.reasoned(cmd)
	cmd.Flags().Int64Var(&q.command.Seq, "at", 0, "`position` of the journal up to which the history is copied")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind = workflow.KindFork
		if q.about = args[0]; checkID(caseIDs, q.about) != nil {
			return checkID(caseIDs, q.about)
		}
		if q.command.Seq < 1 {
			return usagef("--at needs a position of the journal, 1 or more; tasq history %s shows them", q.about)
		}
		result, err := o.do(ctx, q)
		if err != nil || q.left() {
			return err
		}
		return a.printNewCase(ctx, result.Case)
	})
	return cmd
}

// printNewCase prints the id of a case that a command has started, or the case as JSON.
func (a *app) printNewCase(ctx context.Context, id workitem.CaseID) error {
	if a.output != "json" {
		return a.say("%s", id)
	}
	return a.view(ctx, func(r store.Reader) error {
		c, err := findCase(ctx, r, id)
		if err != nil {
			return err
		}
		return a.object(record.OfCase(c))
	})
}

func (a *app) itemRetry() *cobra.Command {
	cmd, q := a.itemRepair(workflow.KindRetry)
	cmd.Short = "retry the work of an item now"
	cmd.Long = paragraph("Retry the work of an item now. An item that waits for its next attempt begins it at once. An item that failed, " +
		"or whose job was abandoned, is replaced by a new one; if it had failed its case, the case resumes. --data is another input. " + helpOfPolicy)
	cmd.Example = `  tasq item retry 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --attempts 10 --wait 1m --reason "the supplier is slow"`
	q.repairing(cmd, "input of the new work item")
	q.policyFlags(cmd)
	return cmd
}

func (a *app) itemSkip() *cobra.Command {
	cmd, q := a.itemRepair(workflow.KindSkip)
	cmd.Short = "complete a work item without its work"
	cmd.Long = paragraph("Complete a work item with an output, as if its work had returned it. An item that failed is first replaced by a " +
		"new one; if it had failed its case, the case resumes.")
	q.repairing(cmd, "output of the item")
	cmd.Flags().StringSliceVar(&q.command.Route, "to", nil,
		"`names` of the tasks or conditions to which the task's xor- or or-split routes, if this ends the task")
	return cmd
}

// itemRepair returns a command that repairs a work item, and shows its replacement.
func (a *app) itemRepair(kind workflow.Kind) (*cobra.Command, *asking) {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{Use: string(kind) + " ITEM", Args: exactly("the id of a work ITEM")}
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind = kind
		if q.about = args[0]; checkID(itemIDs, q.about) != nil {
			return checkID(itemIDs, q.about)
		}
		result, err := o.do(ctx, q)
		if err != nil || q.left() {
			return err
		}
		return a.showRepaired(ctx, kind, result.Item)
	})
	return cmd, q
}

// suspendedBy says who has suspended a case, why and since when: that may be an earlier command.
func suspendedBy(s *state.Suspension) string {
	text := ""
	if s.By != "" {
		text = " by " + printable.Line(s.By)
	}
	text += " for " + printable.Duration(now().Sub(s.At))
	if s.Reason != "" {
		text += " (" + printable.Line(s.Reason) + ")"
	}
	return text
}
