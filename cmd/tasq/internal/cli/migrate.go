package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) migrate() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "migrate [DATABASE]", Short: "create or update the schema of a database",
		Long: paragraph("Create the schema of a database, or apply the migrations that it lacks, all or none, and make indexes that were dropped; and list them. An engine that opens a " +
			"database does the same, but only logs which indexes are missing on a PostgreSQL server, so this is for a deployment that migrates before it starts the new programs, or with another role. The program " +
			"that owns a file must be stopped; on a PostgreSQL server, engines of older programs continue unless a migration excludes them. " +
			"Without DATABASE, --db names it."),
		Example: "  tasq migrate article.db --dry-run\n  tasq migrate postgres://owner@db.example/article",
		Args:    between(0, "DATABASE"),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the missing migrations, and apply none")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		if len(args) == 1 {
			a.db = args[0]
		}
		db, err := a.database()
		if err != nil {
			return err
		}
		return a.migrateTo(ctx, db, dry)
	})
	return cmd
}

func (a *app) migrateTo(ctx context.Context, db database.Database, dry bool) error {
	lacks, err := missing(ctx, db)
	if err != nil {
		return err
	}
	if lacks.anything() && !dry {
		if err := db.Migrate(ctx); errors.Is(err, store.ErrOwned) {
			return exit(ExitDatabase, "%w; the program that owns it is of an older version: stop it, and start its new version afterwards", err)
		} else if err != nil {
			return &exitError{ExitDatabase, err}
		}
	}
	if a.output == "json" {
		return a.object(map[string]any{"database": db.Name(), "created": lacks.all, "migrations": append([]store.Migration{}, lacks.migrations...),
			"indexes": append([]store.Index{}, lacks.indexes...), "dry_run": dry})
	}
	return a.sayMigrated(db, lacks, dry)
}

// lacking is what a database lacks of its schema.
type lacking struct {
	all        bool // it does not exist
	migrations []store.Migration
	indexes    []store.Index // of a schema without a missing migration
}

func (l lacking) anything() bool { return l.all || len(l.migrations) > 0 || len(l.indexes) > 0 }

func missing(ctx context.Context, db database.Database) (lacking, error) {
	if db.Fresh(ctx) {
		return lacking{all: true}, nil
	}
	s, err := read(ctx, db)
	var older *store.OlderError
	switch {
	case errors.As(err, &older):
		return lacking{migrations: older.Pending}, nil
	case errors.Is(err, fs.ErrNotExist):
		return lacking{all: true}, nil
	case err != nil:
		return lacking{}, err
	}
	var lacks lacking
	err = s.View(ctx, func(r store.Reader) error {
		if auditor, ok := r.(store.Auditor); ok {
			lacks.indexes, err = auditor.MissingIndexes(ctx)
		}
		return err
	})
	return lacks, errors.Join(err, s.Close())
}

func (a *app) sayMigrated(db database.Database, lacks lacking, dry bool) error {
	applied, made := "applied", "made"
	if dry {
		applied, made = "missing", "missing"
	}
	var lines []string
	switch {
	case lacks.all && dry:
		lines = append(lines, "there is no database yet; it would be created")
	case lacks.all:
		lines = append(lines, "created")
	case !lacks.anything():
		lines = append(lines, "no migration is missing")
	}
	for _, m := range lacks.migrations {
		lines = append(lines, fmt.Sprintf("%s migration %d (%s)", applied, m.Version, m.Name))
	}
	for _, i := range lacks.indexes {
		lines = append(lines, fmt.Sprintf("%s index %s of the table %s", made, i.Name, i.Table))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(a.Out, "%s: %s\n", printable.Line(db.Name()), line); err != nil {
			return err
		}
	}
	return nil
}
