package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// asking is what the commands that act have in common.
type asking struct {
	a       *app
	command engine.RemoteCommand
	data    data
	timeout time.Duration
	queue   bool
}

func (q *asking) flags(cmd *cobra.Command, what string) {
	q.data.a = q.a
	f := cmd.Flags()
	f.Var(&q.data, "data", what+" (as it is, @FILE, or - for standard input)")
	f.StringVar(&q.command.Key, "key", "",
		"idempotency `key`: a second command with it does nothing, and gets the first answer")
	f.StringVar(&q.command.By, "by", "", "`name` of who acts, for the history (default: the environment variable USER)")
	q.patience(cmd)
}

// patience are the flags that say how long to wait for the answer.
func (q *asking) patience(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&q.timeout, "timeout", 10*time.Second, "how long to wait for the process that owns the database")
	f.BoolVar(&q.queue, "queue", false, "leave the command for the program that owns the database next, and do not wait")
}

// complete fills in what every command has.
func (q *asking) complete() error {
	if q.timeout < 0 {
		return usagef("--timeout %s: use 0s not to wait, or more", q.timeout)
	}
	q.command.Data = q.data.json
	if q.command.Action == workitem.Fail.String() {
		q.command.Data = retryable(q.data.json)
	}
	if q.command.By == "" {
		q.command.By = os.Getenv("USER")
	}
	return nil
}

// retryable makes a failure that does not say whether another attempt may help one that says so, as the error of a
// function does: else a policy to retry would not see it.
func retryable(data json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields == nil || fields["retryable"] != nil {
		return data
	}
	fields["retryable"] = json.RawMessage("true")
	changed, err := json.Marshal(fields)
	if err != nil {
		return data
	}
	return changed
}

// kase is the command "case".
func (a *app) kase() *cobra.Command {
	cmd := &cobra.Command{
		Use: "case", Short: "start, cancel or remove a case", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	cmd.AddCommand(a.caseStart(), a.caseCancel(), a.caseRemove())
	return cmd
}

func (a *app) caseStart() *cobra.Command {
	q := &asking{a: a}
	o := owning{a: a}
	cmd := &cobra.Command{
		Use: "start WORKFLOW", Short: "start a case and print its id",
		Long: paragraph("Start a case of a workflow, and print the id of the case. The workflow is one that this program " +
			"has, one that the database holds as text, or one of a file in net notation (--net)."),
		Example: `  tasq case start article --data '{"text":"Why Petri nets?"}'
  tasq case start article --data '{"text":"Why not?"}' --after 2h --priority 5
  tasq case start review --net review.net --db new.db --create`,
		Args: exactly("the name of a WORKFLOW"),
	}
	q.flags(cmd, "input of the case")
	var after age
	cmd.Flags().Var(&after, "after", "the case is there at once, and begins so much later: 90s, 5m, 2h, 3d")
	cmd.Flags().IntVar(&q.command.Priority, "priority", 0, "`number` of its jobs and work items where their task gives none; higher goes first")
	cmd.Flags().StringVar(&o.net, "net", "", "take the workflow from this `file` in net notation")
	cmd.Flags().BoolVar(&o.create, "create", false, "make the database if it is not there")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		if err := q.complete(); err != nil {
			return err
		}
		q.command.Do, q.command.Workflow, q.command.After = engine.RemoteStart, args[0], time.Duration(after)
		result, err := o.do(ctx, q)
		if err != nil || q.queue {
			return err
		}
		if a.output == "json" {
			return a.view(ctx, func(r store.Reader) error {
				c, err := findCase(ctx, r, result.Case)
				if err != nil {
					return err
				}
				return a.object(rowOfCase(c))
			})
		}
		_, err = fmt.Fprintln(a.Out, result.Case)
		return err
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
		if err := q.complete(); err != nil {
			return err
		}
		q.command.Do = engine.RemoteCancel
		if q.command.Case, err = parseID(workitem.ParseCaseID, "case", args[0]); err != nil {
			return err
		}
		if _, err = o.do(ctx, q); err != nil || q.queue {
			return err
		}
		return a.view(ctx, func(r store.Reader) error {
			c, err := findCase(ctx, r, q.command.Case)
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.object(rowOfCase(c))
			}
			_, err = fmt.Fprintf(a.Out, "case %s of %s is %s\n", c.ID, c.Workflow, c.State)
			return err
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
			"the idempotency keys of its commands. It is gone for good. Cases whose workflow does not keep them for ever are " +
			"removed by the engine itself."),
		Example: `  tasq case remove 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq cases --root-only --state completed --older 90d --limit 0 -o json | jq -r .id | xargs -n 1 tasq case remove`,
		Args: exactly("the id of a CASE"),
	}
	q.patience(cmd)
	cmd.RunE = a.run(func(ctx context.Context, args []string) (err error) {
		if err := q.complete(); err != nil {
			return err
		}
		q.command.Do = engine.RemoteRemove
		if q.command.Case, err = parseID(workitem.ParseCaseID, "case", args[0]); err != nil {
			return err
		}
		if _, err = o.do(ctx, q); err != nil || q.queue {
			return err
		}
		if a.output == "json" {
			return a.object(removedRow{ID: q.command.Case, State: "removed"})
		}
		_, err = fmt.Fprintf(a.Out, "case %s is removed\n", q.command.Case)
		return err
	})
	return cmd
}

// removedRow is what is left to tell of a case.
type removedRow struct {
	ID    workitem.CaseID `json:"id"`
	State string          `json:"state"`
}

// item is the command "item".
func (a *app) item() *cobra.Command {
	cmd := &cobra.Command{
		Use: "item", Short: "start, complete, fail, cancel or reset a work item", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	for _, action := range []struct {
		do          workitem.Action
		short, more string
		data        string
		ends        bool // the action may complete the task
	}{
		{workitem.Start, "start a work item", "The item must be initialized.", "payload of the action", false},
		{workitem.Complete, "complete a work item", "The item must be started. What the task does next is up to its policy.",
			"output of the item", true},
		{workitem.Fail, "fail a work item", "The item must be started. The data say why: an object with code, message and " +
			"details, and with retryable, which is true unless said otherwise. A process with a policy to retry makes a " +
			"fresh item then.",
			"the failure", true},
		{workitem.Cancel, "cancel a work item", "The item must not be final. The data say why: an object with code, message " +
			"and details.", "the reason", true},
		{workitem.Reset, "take a work item back", "The item must be started, and is initialized afterwards.",
			"payload of the action", false},
	} {
		sub := a.itemAction(action.do, action.data, action.ends)
		sub.Short = action.short
		sub.Long = paragraph(strings.ToUpper(action.short[:1]) + action.short[1:] + ". " + action.more)
		cmd.AddCommand(sub)
	}
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
		cmd.Flags().StringSliceVar(&q.command.To, "to", nil,
			"`names` of the tasks or conditions that the task's xor- or or-split goes to, if this ends the task")
	}
	cmd.RunE = a.run(func(ctx context.Context, args []string) (err error) {
		q.command.Do, q.command.Action = engine.RemoteItem, do.String()
		if err := q.complete(); err != nil {
			return err
		}
		if q.command.Item, err = parseID(workitem.ParseID, "work item", args[0]); err != nil {
			return err
		}
		if _, err = o.do(ctx, q); err != nil || q.queue {
			return err
		}
		return a.view(ctx, func(r store.Reader) error {
			it, err := findItem(ctx, r, q.command.Item)
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.object(rowOfItem(it))
			}
			_, err = fmt.Fprintf(a.Out, "work item %s (%s/%s) is %s\n", it.ID, it.Workflow, it.Label(), it.State)
			return err
		})
	})
	return cmd
}
