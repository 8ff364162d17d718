package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/workflow"
)

// event is the command "event".
func (a *app) event() *cobra.Command {
	cmd := &cobra.Command{
		Use: "event", Short: "send an event to a case, by token, or to a topic", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	cmd.AddCommand(a.eventSend(), a.eventToken(), a.eventBroadcast())
	return cmd
}

func (a *app) eventSend() *cobra.Command {
	q, o := &asking{a: a}, owning{a: a}
	cmd := &cobra.Command{
		Use: "send CASE EVENT", Short: "send an event to a case",
		Long: paragraph("Send an event to a case. The step that has waited longest for an event of that name takes it; if no step waits, " +
			"it is kept for the next one."),
		Example: `  tasq event send 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 paid --data '{"amount":100}'`,
		Args:    exactly("the id or business key of a CASE", "the name of an EVENT"),
	}
	q.flags(cmd, "the event's value")
	cmd.RunE = a.run(func(ctx context.Context, args []string) (err error) {
		q.command.Kind, q.command.Event = workflow.KindSend, args[1]
		if q.about = args[0]; checkID(caseIDs, q.about) != nil {
			return checkID(caseIDs, q.about)
		}
		return a.send(ctx, o, q, fmt.Sprintf("event %s sent to case %s", args[1], args[0]))
	})
	return cmd
}

func (a *app) eventToken() *cobra.Command {
	q, o := &asking{a: a}, owning{a: a}
	cmd := &cobra.Command{
		Use: "token TOKEN", Short: "send the event of a token, once",
		Long: paragraph("Send the event of a token to the case that created the token. A token can be used once."),
		Args: exactly("a TOKEN"),
	}
	q.flags(cmd, "the event's value")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind, q.command.Token = workflow.KindToken, args[0]
		return a.send(ctx, o, q, "event sent by token")
	})
	return cmd
}

func (a *app) eventBroadcast() *cobra.Command {
	q, o := &asking{a: a}, owning{a: a}
	cmd := &cobra.Command{
		Use: "broadcast TOPIC", Short: "send an event to all waiting steps and subscribed workflows of a topic",
		Args: exactly("a TOPIC"),
	}
	q.flags(cmd, "the value")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind, q.command.Event = workflow.KindBroadcast, args[0]
		return a.send(ctx, o, q, "")
	})
	return cmd
}

// send sends the command to the owner of the database, and prints what was done.
func (a *app) send(ctx context.Context, o owning, q *asking, done string) error {
	result, err := o.do(ctx, q)
	if err != nil || q.left() {
		return err
	}
	if a.output == "json" {
		return a.object(result)
	}
	if q.command.Kind == workflow.KindBroadcast {
		done = fmt.Sprintf("topic %s reached %d", q.command.Event, result.Count)
	}
	already, err := a.already(ctx, q)
	if err != nil {
		return err
	}
	return a.say("%s%s", done, already)
}
