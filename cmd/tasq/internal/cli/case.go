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

// caseCommand is the command "case".
func (a *app) caseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "case", Short: "start, restart, fork, suspend, resume, move, cancel or remove a case", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	cmd.AddCommand(a.caseStart(), a.caseRestart(), a.caseFork(), a.caseCancel(), a.caseSuspend(), a.caseResume(), a.caseMove(), a.caseRemove())
	return cmd
}

func (a *app) caseStart() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use: "start WORKFLOW", Short: "start a case and print its id",
		Long: paragraph("Start a case of a workflow, and print the id of the case. The workflow is one of the database, one of a file in " +
			"net notation (--net), or a recipe of tasq demo (demo:NAME), which runs in its own database. If the workflow has code, " +
			"the program with that code executes the command when it owns the database. With --file, start a case for each line of a file, " +
			"and print how many. A line that is refused is reported with its number, and does not affect the others. With --key, the key of " +
			"a case is that key and the number of its line, so that a repeated command continues after an interruption, and starts no case twice. " +
			"With --dry-run, the lines are checked as a start checks them, and counted."),
		Example: `  tasq case start article --data '{"text":"Why Petri nets?"}'
  tasq case start article --data '{"text":"Why not?"}' --after 2h --priority 5
  tasq case start review --net review.net --db new.db --create
  tasq case start article --file articles.ndjson --key import-7`,
		Args: exactly("the name of a WORKFLOW"),
	}
	q.flags(cmd, "input of the case")
	many := caseFile{o: &o, q: q}
	cmd.Flags().StringVar(&many.name, "file", "", "start a case for each line of this `file`, the input in JSON (- for standard input)")
	var after age
	cmd.Flags().Var(&after, "after", "create the case now, and begin it after this delay: 90s, 5m, 2h, 3d")
	cmd.Flags().IntVar(&q.command.Priority, "priority", 0,
		"`priority` of its jobs and work items, unless their task has one; higher goes first")
	cmd.Flags().StringVar(&q.command.Queue, "on-queue", "", "`queue` of its jobs, instead of those of its tasks and functions")
	cmd.Flags().StringVar(&q.command.BusinessKey, "business-key", "", "business `key` of the case, instead of the one that its workflow "+
		"derives from the input")
	cmd.Flags().StringVar((*string)(&q.command.IfTaken), "if-taken", "", "what to do if a case holds the business key: refuse, return "+
		"(start nothing, and print its id), replace (cancel it if it has not begun), supersede (cancel it if it is active), queue "+
		"(begin when it has ended), debounce (see --debounce)")
	var quiet, longest age
	cmd.Flags().Var(&quiet, "debounce", "begin after this time without a start with the business key: 90s, 5m; each start replaces the one "+
		"before")
	cmd.Flags().Var(&longest, "debounce-max", "with --debounce, begin at the latest this long after the first start (default: no limit)")
	cmd.Flags().StringVar((*string)(&q.command.Per), "once-per", "", "allow one case with the business key in each calendar `period`: "+
		"hour, day, week, month")
	cmd.Flags().StringVar(&q.command.Zone, "zone", "", "time zone of --once-per, such as `Europe/Berlin` (default UTC)")
	cmd.Flags().Var(throttle{&q.command}, "throttle", "allow at most n starts with the business key in any window, as `n/window`: 1/30s, "+
		"10/1h; a further start is refused, or returns the last case with --if-taken return")
	cmd.Flags().Var((*labels)(&q.command.Labels), "label", "label of the case, as `name=value`; may be repeated")
	cmd.Flags().StringVar(&o.net, "net", "", "take the workflow from this `file` in net notation")
	cmd.Flags().BoolVar(&o.create, "create", false, "create the database if it does not exist")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind, q.command.Workflow, q.command.After = workflow.KindStart, args[0], time.Duration(after)
		if cmd.Flags().Changed("once-per") && q.command.Per == "" {
			return usagef("--once-per names no period; give hour, day, week or month, or leave it out")
		}
		if q.command.Quiet, q.command.Longest = time.Duration(quiet), time.Duration(longest); quiet != 0 && q.command.IfTaken == "" {
			q.command.IfTaken = workflow.Debounced
		}
		if many.name != "" {
			return many.run(ctx)
		}
		result, err := o.do(ctx, q)
		if err != nil || q.left() {
			return err
		}
		return a.printNewCase(ctx, result.Case)
	})
	return cmd
}

func (a *app) caseCancel() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Short: "cancel a case with all its work",
		Long: paragraph("Cancel a case with its work items, jobs and child cases. --data has the reason: an object with code, message and " +
			"details. " + helpOfMany + " Only root cases that have not ended are selected, and no bulk actions."),
		Example: `  tasq case cancel 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --data '{"code":"withdrawn"}'
  tasq case cancel --workflow order --label region=south --all --reason "the shop is closed"`,
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
	a.manyCases(cmd, q, workflow.KindCancel)
	return cmd
}

func (a *app) caseRemove() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Short: "remove a case that has ended",
		Long: paragraph("Remove a root case that has ended, with its child cases, work items, jobs, steps, events, history, and the " +
			"idempotency keys of its commands. This cannot be undone. tasq audit shows who removed it, when and why. If the workflow has a retention time, the engine removes its " +
			"cases by itself." + helpOfEnded + helpOfBulk),
		Example: `  tasq case remove 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq case remove --state completed --older 90d --all --reason "older than a quarter"`,
	}
	cmd.Flags().StringVar(&q.command.Actor, "by", "", "`name` of the actor, for the audit (default: the environment variable USER)")
	cmd.Flags().StringVar(&q.reason, "reason", "", "`reason`, for the audit")
	q.dryRunFlag(cmd)
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
	a.manyCases(cmd, q, workflow.KindRemove)
	return cmd
}

// removedRow is the JSON form of a removed case.
type removedRow struct {
	ID    workitem.CaseID `json:"id"`
	State string          `json:"state"`
}
