package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) backup() *cobra.Command {
	var force, quiet bool
	cmd := &cobra.Command{
		Use: "backup [FILE] TO", Short: "copy a database, also while it is in use",
		Long: paragraph("Copy a database into the file TO, also while an engine owns it and writes. The copy has everything that was " +
			"acknowledged when the command began. It is checked as by tasq doctor and synced to disk before it is renamed to TO, so " +
			"TO is always a complete copy. Without FILE, --db names the database."),
		Example: "  tasq backup article.db backups/article-2030-01-02.db",
		Args:    between(1, "TO", "FILE"),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "replace an existing file TO")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show progress")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		if len(args) == 2 {
			a.db = args[0]
		}
		return a.copyTo(ctx, args[len(args)-1], force, a.meter(quiet))
	})
	return cmd
}

func (a *app) copyTo(ctx context.Context, to string, force bool, m *meter) error {
	var report integrity.Report
	err := a.withStore(ctx, func(s store.Store) error {
		from, ok := s.(store.Backuper)
		if !ok {
			return usagef("a database of a PostgreSQL server is copied by its own means: pg_dump, or a base backup with the log; tasq " +
				"copy moves its cases into a file")
		}
		return from.Backup(ctx, to, store.BackupOptions{
			Overwrite: force,
			Progress:  func(pages, of int64) { m.show("copied", pages, of, "pages") },
			Verify: func(ctx context.Context, s store.Store) (err error) {
				report, err = integrity.Inspect(ctx, s, m.checked)
				if err == nil && len(report.Breaches) > 0 {
					err = exit(ExitNo, "%d rules are broken in it, and so in the database; tasq doctor lists them. The first: %w",
						len(report.Breaches)+report.More, report.Breaches[0])
				}
				return err
			},
		})
	})
	m.end()
	if errors.Is(err, fs.ErrExist) {
		return &exitError{ExitUsage, fmt.Errorf("%w (flag --force)", err)}
	}
	if err != nil {
		return err
	}
	if a.output == "json" {
		return a.object(map[string]any{"copy": to, "cases": report.Cases, "entries": report.Entries})
	}
	_, err = fmt.Fprintf(a.Out, "%s: a whole copy, %d root cases, %d journal entries\n", printable.Line(to), report.Cases, report.Entries)
	return err
}
