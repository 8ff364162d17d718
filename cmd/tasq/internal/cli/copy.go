package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/transfer"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) copy() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use: "copy FROM TO", Short: "copy all cases into another database, a file or a server",
		Long: paragraph("Copy all cases of the database FROM into the database TO, which must have none: each a file or postgres://... . " +
			"Cases are copied with their journal, items, jobs, steps and events, and continue in TO where they were. Definitions, " +
			"idempotency keys and the records of collections are copied, too; your own tables are not. No engine may run on FROM or " +
			"TO meanwhile. Both are checked as by tasq doctor. To resume an interrupted copy, run the same command again; do not " +
			"open TO with an engine before it is complete."),
		Example: "  tasq copy article.db postgres://app@db.example/article\n  tasq copy postgres://app@db.example/article article.db",
		Args:    exactly("FROM", "TO"),
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show progress")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		from, err := named(args[0])
		if err != nil {
			return err
		}
		to, err := named(args[1])
		if err != nil {
			return err
		}
		return a.copyAll(ctx, from, to, a.meter(quiet))
	})
	return cmd
}

func (a *app) copyAll(ctx context.Context, from, to database.Database, m *meter) error {
	if from.Fresh(ctx) {
		return exit(ExitDatabase, "%s holds no cases: name the database to be copied first", from.Name())
	}
	var copied transfer.Progress
	err := opened(ctx, from, func(source store.Store) error {
		if err := a.checkWhole(ctx, source, from, m); err != nil {
			return err
		}
		return opened(ctx, to, func(target store.Store) (err error) {
			copied, err = transfer.Copy(ctx, source, target,
				func(p transfer.Progress) { m.show("copied", p.Entries, p.Of, "journal entries") })
			if err != nil {
				return err
			}
			return a.checkWhole(ctx, target, to, m)
		})
	})
	m.end()
	switch {
	case errors.Is(err, transfer.ErrNotEmpty), errors.Is(err, transfer.ErrRequests):
		return &exitError{ExitRefused, err}
	case err != nil:
		return err
	case a.output == "json":
		return a.object(map[string]any{"copy": to.Name(), "entries": copied.Entries})
	}
	_, err = fmt.Fprintf(a.Out, "%s: a whole copy, %d journal entries\n", printable.Line(to.Name()), copied.Entries)
	return err
}

// opened runs f on a database that this process owns for that time.
func opened(ctx context.Context, db database.Database, f func(store.Store) error) error {
	s, err := db.Opener().Open(ctx, store.Options{Now: now})
	if err != nil {
		return &exitError{ExitDatabase, err}
	}
	return errors.Join(f(s), s.Close())
}

func (a *app) checkWhole(ctx context.Context, s store.Store, db database.Database, m *meter) error {
	report, err := integrity.Inspect(ctx, s, m.checked)
	if err == nil && len(report.Breaches) > 0 {
		err = exit(ExitNo, "%d rules are broken in %s; tasq doctor lists them. The first: %w", len(report.Breaches)+report.More, db.Name(),
			report.Breaches[0])
	}
	return err
}
