package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

// search is the command "search".
func (a *app) search() *cobra.Command {
	cmd := &cobra.Command{
		Use: "search WORD", Short: "find what a word names: an id, a business key, a label, an idempotency key",
		Long: paragraph("Find what a word names: the case, work item or job with that id; the newest cases with that business key, or with a label, as " +
			"in customer=ada; the command with that idempotency key, with its case and its place in the history; the workflows whose names begin with " +
			"the word; and the newest cases and items whose ids end or begin with it, from four characters on. The exit code is 3 if there is nothing."),
		Example: "  tasq search C-4711\n  tasq search customer=ada\n  tasq search 5e6f4b21",
		Args:    exactly("a WORD"),
	}
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.view(ctx, func(r store.Reader) error {
			found, err := store.Find(ctx, r, args[0], nil)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return exit(ExitNotFound, "nothing found for %q: it is no id, no suffix of an id of the newest %d cases and items, no business key, no label (as in customer=ada), no "+
					"idempotency key, no workflow", args[0], store.MaxSuffixes)
			}
			return a.showMatches(found)
		})
	})
	return cmd
}

func (a *app) showMatches(found []store.Match) error {
	t := a.table("KIND", "BY", "WHAT", "CASE", "STATE", "TIME")
	for _, m := range found {
		if a.output == "json" {
			if err := a.object(m); err != nil {
				return err
			}
			continue
		}
		what, of := m.ID, m.Case.String()
		switch m.Kind {
		case "workflow":
			what, of = m.Workflow, ""
		case "command":
			what = fmt.Sprintf("%s, entry %d", m.Command, m.Seq)
		}
		when := ""
		if !m.At.IsZero() {
			when = printable.Time(m.At)
		}
		t.add(m.Kind, m.By, what, of, m.State, when)
	}
	return t.flush()
}
