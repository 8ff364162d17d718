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
		Long: paragraph("Create the schema of a database, or apply the migrations that it lacks, all or none, and list them. An engine that opens a " +
			"database does the same, so this is for a deployment that migrates before it starts the new programs, or with another role. The program " +
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
	made, pending, err := missing(ctx, db)
	if err != nil {
		return err
	}
	if (made || len(pending) > 0) && !dry {
		if err := db.Migrate(ctx); errors.Is(err, store.ErrOwned) {
			return exit(ExitDatabase, "%w; the program that owns it is of an older version: stop it, and start its new version afterwards", err)
		} else if err != nil {
			return &exitError{ExitDatabase, err}
		}
	}
	if a.output == "json" {
		return a.object(map[string]any{"database": db.Name(), "created": made, "migrations": append([]store.Migration{}, pending...), "dry_run": dry})
	}
	return a.sayMigrated(db, made, pending, dry)
}

// missing reports whether a database does not exist yet, or else which migrations it lacks.
func missing(ctx context.Context, db database.Database) (made bool, pending []store.Migration, err error) {
	if db.Fresh(ctx) {
		return true, nil, nil
	}
	s, err := read(ctx, db)
	var older *store.OlderError
	switch {
	case errors.As(err, &older):
		return false, older.Pending, nil
	case errors.Is(err, fs.ErrNotExist):
		return true, nil, nil
	case err != nil:
		return false, nil, err
	}
	return false, nil, s.Close()
}

func (a *app) sayMigrated(db database.Database, made bool, pending []store.Migration, dry bool) error {
	name, did := printable.Line(db.Name()), "applied"
	switch {
	case made && dry:
		_, err := fmt.Fprintf(a.Out, "%s: there is no database yet; it would be created\n", name)
		return err
	case made:
		_, err := fmt.Fprintf(a.Out, "%s: created\n", name)
		return err
	case len(pending) == 0:
		_, err := fmt.Fprintf(a.Out, "%s: no migration is missing\n", name)
		return err
	case dry:
		did = "missing"
	}
	for _, m := range pending {
		if _, err := fmt.Fprintf(a.Out, "%s: %s migration %d (%s)\n", name, did, m.Version, m.Name); err != nil {
			return err
		}
	}
	return nil
}
