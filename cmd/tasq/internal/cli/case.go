package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// kase is the command "case".
func (a *app) kase() *cobra.Command {
	cmd := &cobra.Command{
		Use: "case", Short: "start, fork, suspend, resume, correct, cancel or remove a case", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	cmd.AddCommand(a.caseStart(), a.caseFork(), a.caseCancel(), a.caseSuspend(), a.caseResume(), a.caseMove(), a.caseRemove())
	return cmd
}

func (a *app) caseStart() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use: "start WORKFLOW", Short: "start a case and print its id",
		Long: paragraph("Start a case of a workflow, and print the id of the case. The workflow is one of the database, one of a " +
			"file in net notation (--net), or a recipe of tasq demo (demo:NAME), which runs in a database of its own. If " +
			"the workflow is code, the program that has it does the command, once it owns the database."),
		Example: `  tasq case start article --data '{"text":"Why Petri nets?"}'
  tasq case start article --data '{"text":"Why not?"}' --after 2h --priority 5
  tasq case start review --net review.net --db new.db --create`,
		Args: exactly("the name of a WORKFLOW"),
	}
	q.flags(cmd, "input of the case")
	var after age
	cmd.Flags().Var(&after, "after", "the case is there at once, and begins so much later: 90s, 5m, 2h, 3d")
	cmd.Flags().IntVar(&q.command.Priority, "priority", 0,
		"`number` of its jobs and work items where their task gives none; higher goes first")
	cmd.Flags().StringVar(&q.command.BusinessKey, "business-key", "", "`key` that the case is found by, in place of what its workflow makes of "+
		"the input")
	cmd.Flags().StringVar((*string)(&q.command.IfTaken), "if-taken", "", "what to do if a case holds the business key: refuse, return (start nothing, and "+
		"print its id), replace (cancel it if it has not begun), supersede (cancel it if it goes on), queue (begin when it has ended), debounce (see --debounce)")
	var quiet, longest age
	cmd.Flags().Var(&quiet, "debounce", "begin when no start with the business key has come for so long: 90s, 5m; each takes the place of the one before")
	cmd.Flags().Var(&longest, "debounce-max", "with --debounce, put the begin off for so long at most, since the first start (default without a bound)")
	cmd.Flags().StringVar((*string)(&q.command.Per), "once-per", "", "one case with the business key for each calendar `period`: hour, day, week, month")
	cmd.Flags().StringVar(&q.command.Zone, "zone", "", "time zone of --once-per, such as `Europe/Berlin` (default UTC)")
	cmd.Flags().Var(throttle{&q.command}, "throttle", "at most so many cases with the business key start in any window, as `n/window`: 1/30s, 10/1h; "+
		"one too many is refused, or finds the last one with --if-taken return")
	cmd.Flags().Var((*labels)(&q.command.Labels), "label", "label that the case is found by, as `name=value`; may be given several times")
	cmd.Flags().StringVar(&o.net, "net", "", "take the workflow from this `file` in net notation")
	cmd.Flags().BoolVar(&o.create, "create", false, "make the database if it is not there")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind, q.command.Workflow, q.command.After = workflow.KindStart, args[0], time.Duration(after)
		if cmd.Flags().Changed("once-per") && q.command.Per == "" {
			return usagef("--once-per names no period; give hour, day, week or month, or leave it out")
		}
		if q.command.Quiet, q.command.Longest = time.Duration(quiet), time.Duration(longest); quiet != 0 && q.command.IfTaken == "" {
			q.command.IfTaken = workflow.Debounced
		}
		result, err := o.do(ctx, q)
		if err != nil || q.left() {
			return err
		}
		if a.output == "json" {
			return a.view(ctx, func(r store.Reader) error {
				c, err := findCase(ctx, r, result.Case)
				if err != nil {
					return err
				}
				return a.object(record.OfCase(c))
			})
		}
		return a.say("%s", result.Case)
	})
	return cmd
}

func (a *app) caseCancel() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use: "cancel CASE", Short: "cancel a case with all that it owns",
		Long: paragraph("Cancel a case with its work items, jobs and child cases. The data say why: an object with code, " +
			"message and details."),
		Example: `  tasq case cancel 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --data '{"code":"withdrawn"}'`,
		Args:    exactly("the id of a CASE"),
	}
	q.flags(cmd, "the reason")
	cmd.RunE = a.run(func(ctx context.Context, args []string) (err error) {
		q.command.Kind = workflow.KindCancel
		if q.about = args[0]; checkID(caseIDs, q.about) != nil {
			return checkID(caseIDs, q.about)
		}
		if _, err = o.do(ctx, q); err != nil || q.left() {
			return err
		}
		return a.view(ctx, func(r store.Reader) error {
			c, err := findCase(ctx, r, q.command.Case)
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.object(record.OfCase(c))
			}
			return a.say("case %s of %s is %s", c.ID, c.Workflow, c.State)
		})
	})
	return cmd
}

func (a *app) caseRemove() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use: "remove CASE", Short: "remove a case that has ended",
		Long: paragraph("Remove a root case that has ended, with its child cases, work items, jobs, steps, events, history, and " +
			"the idempotency keys of its commands. It is gone for good. Cases whose workflow does not keep them without end are " +
			"removed by the engine itself."),
		Example: `  tasq case remove 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq cases --root-only --state completed --older 90d --limit 0 -o json | jq -r .id | xargs -n 1 tasq case remove`,
		Args: exactly("the id of a CASE"),
	}
	q.patience(cmd)
	cmd.RunE = a.run(func(ctx context.Context, args []string) (err error) {
		q.command.Kind = workflow.KindRemove
		if q.about = args[0]; checkID(caseIDs, q.about) != nil {
			return checkID(caseIDs, q.about)
		}
		if _, err = o.do(ctx, q); err != nil || q.left() {
			return err
		}
		if a.output == "json" {
			return a.object(removedRow{ID: q.command.Case, State: "removed"})
		}
		return a.say("case %s is removed", q.command.Case)
	})
	return cmd
}

// removedRow is what is left to tell of a case.
type removedRow struct {
	ID    workitem.CaseID `json:"id"`
	State string          `json:"state"`
}
