package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// redrive is the command "redrive".
func (a *app) redrive() *cobra.Command {
	q := &asking{a: a}
	var f store.CaseFilter
	var of, code string
	var older age
	all := false
	cmd := &cobra.Command{
		Use: "redrive [LETTER]", Short: "start what was given up again, by its dead letter",
		Long: paragraph("Start the original of a dead letter again: a work item has another attempt, a run begins anew, a case of several tasks " +
			"goes on where it failed. The letter is a case of its own, by the id of which it is given; tasq cases --label " +
			workflow.LabelLetter + "=yes lists all. It is canceled. Without a LETTER those that go on and that the flags select are counted, and " +
			"nothing is done. With --all, each gets a command of its own: a refused one is reported and keeps no other back. If no process " +
			"owns the database, the action is a case of the workflow " + bulk.Name + ", which goes on where it was if it is interrupted."),
		Example: "  tasq redrive 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --reason 'the account is filled'\n" +
			"  tasq redrive --of charge --code no-funds --older 1h\n" +
			"  tasq redrive --of charge --code no-funds --older 1h --all --reason 'the accounts are filled'",
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&of, "of", "", "only letters of the workflow or function with this `name`")
	flags.StringVar(&code, "code", "", "only letters whose failure has this `code`")
	flags.Var(&older, "older", "only letters that are there at least so long: 90s, 5m, 2h, 3d")
	flags.BoolVar(&all, "all", false, "act on all that match")
	q.reasoned(cmd)
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind = workflow.KindRedrive
		if len(args) == 1 {
			return a.oneLetter(ctx, q, args[0])
		}
		if older > 0 {
			f.Before = older.before(now())
		}
		var targets []string
		err := a.view(ctx, func(r store.Reader) (err error) {
			targets, err = bulk.Letters(ctx, oneView{r}, f, of, code)
			return err
		})
		switch {
		case err != nil:
			return err
		case !all || q.dryRun:
			return a.say("%s would be acted on; repeat the command with --all", printable.Plural(len(targets), "dead letter"))
		case len(targets) == 0:
			return a.say("there is no dead letter that matches")
		}
		return a.many(ctx, q, targets, "dead letter")
	})
	return cmd
}

func (a *app) oneLetter(ctx context.Context, q *asking, letter string) error {
	if err := checkID(caseIDs, letter); err != nil {
		return err
	}
	q.about = letter
	o := owning{a: a}
	result, err := o.do(ctx, q)
	if err != nil || q.left() {
		return err
	}
	return a.view(ctx, func(r store.Reader) error {
		c, err := findCase(ctx, r, result.Case)
		if err != nil {
			return err
		}
		if a.output == "json" {
			return a.object(record.OfCase(c))
		}
		return a.say("case %s of %s goes on: it is %s", c.ID, c.Workflow, c.State)
	})
}
