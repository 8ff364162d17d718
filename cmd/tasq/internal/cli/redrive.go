package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// redrive is the command "redrive".
func (a *app) redrive() *cobra.Command {
	cmd, q := a.caseRepair(workflow.KindRedrive, "goes on")
	one := cmd.RunE
	var f store.CaseFilter
	var of, code string
	var older bound
	all := false
	cmd.Use, cmd.Short = "redrive [LETTER]", "start failed work again, from its dead letter"
	cmd.Long = paragraph("Start the original of a dead letter again: a work item gets another attempt, a run starts afresh, a case of " +
		"several tasks resumes where it failed. A letter is a case, and is identified by its id; tasq cases --label " +
		workflow.LabelLetter + "=yes lists all. Redriving cancels the letter. Without a LETTER, the active letters that the flags select " +
		"are only counted. With --all, each gets its own command; a refusal is reported and does not affect the others. " +
		helpOfBulk)
	cmd.Example = "  tasq redrive 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --reason 'the account is filled'\n" +
		"  tasq redrive --of charge --code no-funds --older 1h\n" +
		"  tasq redrive --of charge --code no-funds --older 1h --all --reason 'the accounts are filled'"
	cmd.Args = cobra.MaximumNArgs(1)
	flags := cmd.Flags()
	flags.StringVar(&of, "of", "", "only letters of the workflow or function with this `name`")
	flags.StringVar(&code, "code", "", "only letters whose failure has this `code`")
	flags.Var(&older, "older", "only letters that are at least this old (90s, 5m, 2h, 3d), or older than this time")
	flags.BoolVar(&all, "all", false, "act on all matches")
	q.reasoned(cmd)
	many := a.run(func(ctx context.Context, _ []string) error {
		q.command.Kind = workflow.KindRedrive
		f.Before = older.time(now())
		var targets []string
		err := a.view(ctx, func(r store.Reader) (err error) {
			targets, err = bulk.Letters(ctx, store.ViewerOf(r), f, of, code)
			return err
		})
		if err != nil {
			return err
		}
		return a.countFirst(ctx, q, all, targets, "dead letter")
	})
	cmd.RunE = oneOrMany(one, many)
	return cmd
}
