package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

const migrationsTable = `CREATE TABLE IF NOT EXISTS @.schema_migrations (
    version  integer PRIMARY KEY,
    name     text    NOT NULL,
    checksum text    NOT NULL,
    applied  bigint  NOT NULL
)`

// migrate applies the missing migrations, all or none. Programs that open an empty database at the same time do so one
// after the other.
func (s *Store) migrate(ctx context.Context, c *conn) error {
	if s.db.set.noMigrate {
		return s.mustBeMigrated(c)
	}
	up, err := s.upToDate(c)
	if err != nil || up {
		return err
	}
	err = c.transaction(ctx, func() error { return s.applyMigrations(ctx, c) })
	if code(err) == insufficientRight {
		err = s.db.at("%w: its schema %s lacks tables of this version, and the role may not make them: open it once with a role that may make "+
			"tables, and give this one the rights to read and write them: %w", store.ErrReadOnly, s.db.set.schema, err)
	}
	return err
}

// It is for a role that may not make tables: the schema is made by another program, and an engine that would not find
// its tables is refused when it is opened.
func (s *Store) mustBeMigrated(c *conn) error {
	there, err := hasSchema(c)
	if err != nil {
		return err
	}
	if !there {
		return s.db.noSchema()
	}
	pending, err := pendingMigrations(c)
	if err == nil && len(pending) > 0 {
		err = s.db.older(pending)
	}
	return err
}

// upToDate reports whether no migration is missing. It needs no lock: in most cases nothing is missing, and the lock of
// migrations would serialize engines that start at the same time.
// If none is missing, mustBeWhole looks for a table that was dropped, before a statement needs it.
func (s *Store) upToDate(c *conn) (bool, error) {
	there, err := hasSchema(c)
	if err != nil || !there {
		return false, err
	}
	pending, err := pendingMigrations(c)
	if err == nil && len(pending) == 0 {
		return true, s.db.mustBeWhole(c)
	}
	return false, err
}

// hasSchema reports whether the schema was made by a migration.
func hasSchema(c *conn) (bool, error) {
	_, found, err := c.number("SELECT to_regclass('@.schema_migrations')::oid::bigint")
	return found, err
}

// lockKey is the key of an advisory lock of the schema; its argument distinguishes the uses.
// A lock of the server is a number of 64 bits. Two texts may have the same hash; then one waits for the other without
// need.
const lockKey = "hashtextextended('tasq ' || $1 || ' @', 0)"

// applyMigrations runs in one transaction, since PostgreSQL can roll back changes of a schema: a crash leaves the old
// version. An engine that waits for the lock finds nothing left to do, since it checks after it has the lock.
//
// Migrations only add, so engines of an older version continue to work with the tables. A migration waits for their
// locks, up to lock_timeout, when it changes a table.
func (s *Store) applyMigrations(ctx context.Context, c *conn) error {
	if err := c.exec(ctx, "SET LOCAL lock_timeout = '30s'; SET LOCAL statement_timeout = 0"); err != nil {
		return err
	}
	if _, err := c.run("SELECT pg_advisory_xact_lock("+lockKey+")", "migrate"); err != nil {
		return err
	}
	there, err := hasSchema(c)
	if err != nil {
		return err
	}
	if !there {
		// A role may have the privilege to create tables in a schema that was created for it, but not to create
		// schemas.
		_, made, err := c.number("SELECT 1 FROM pg_namespace WHERE nspname = '@'")
		if err != nil {
			return err
		}
		if !made {
			if err := c.exec(ctx, "CREATE SCHEMA @"); err != nil {
				return err
			}
		}
		if err := c.exec(ctx, migrationsTable); err != nil {
			return err
		}
	}
	pending, err := pendingMigrations(c)
	if err != nil {
		return err
	}
	// The files name tables without a schema, since the user chooses its name.
	if err := c.exec(ctx, "SET LOCAL search_path = @"); err != nil {
		return err
	}
	for _, m := range pending {
		// By the simple protocol: a migration has several statements. It is not passed through c.exec, which replaces
		// the sign that stands for the schema: the names are found by search_path instead.
		if _, err := c.pg.PgConn().Exec(ctx, m.SQL).ReadAll(); err != nil {
			return s.notMigrated(m, err)
		}
		if _, err := c.run("INSERT INTO @.schema_migrations (version, name, checksum, applied) VALUES ($1, $2, $3, $4)",
			m.Version, m.Name, m.Checksum, state.Micros(s.now())); err != nil {
			return err
		}
	}
	return nil
}

// pendingMigrations lists the migrations that the schema lacks.
// The list of versions and the checksums are compared: a schema of a later version, or one whose migrations were
// other texts, is an error.
func pendingMigrations(c *conn) ([]sqlkit.Migration, error) {
	folder, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	known, err := sqlkit.Load(folder)
	if err != nil {
		return nil, err
	}
	var applied []sqlkit.Applied
	err = c.each("SELECT version, checksum FROM @.schema_migrations ORDER BY version", nil, func(r *tables.Row) error {
		applied = append(applied, sqlkit.Applied{Version: int(r.Number()), Checksum: r.Text()})
		return r.Err
	})
	if err != nil {
		return nil, err
	}
	pending, err := sqlkit.Pending(known, applied)
	switch {
	case errors.Is(err, sqlkit.ErrNewer):
		return nil, fmt.Errorf("%w: %w", store.ErrNewer, err)
	case errors.Is(err, sqlkit.ErrChanged):
		return nil, fmt.Errorf("%w: %w: it was made by a program that is no release", store.ErrCorrupt, err)
	}
	return pending, err
}

// notMigrated explains why a migration failed. The first one creates the tables; a table that exists then is another
// program's.
func (s *Store) notMigrated(m sqlkit.Migration, err error) error {
	const duplicateTable = "42P07"
	if known := (*pgconn.PgError)(nil); m.Version == 1 && errors.As(err, &known) && known.Code == duplicateTable {
		return s.db.at("%w: its schema %s has tables of another program, and was not changed: name another schema or database: %w",
			store.ErrForeign, s.db.set.schema, err)
	}
	return fmt.Errorf("migration %d (%s): %w", m.Version, m.Name, err)
}
