package postgres

import (
	"cmp"
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
		err = s.db.at("%w: its schema %s lacks tables of this version, and the role may not make them: run tasq migrate, or open it once, with a role that may "+
			"make tables, and give this one the rights to read and write them: %w", errRight, s.db.set.schema, err)
	}
	return err
}

// It is for a role that may not make tables: the schema is made by another program, and an engine that would not find
// its tables is refused when it is opened.
func (s *Store) mustBeMigrated(c *conn) error {
	const once = "and this engine does not migrate (postgres.NoMigrate): run tasq migrate of this version, or open it once without that option, with a role that may make tables"
	there, err := s.db.hasSchema(c)
	if err != nil {
		return err
	}
	if !there {
		return s.db.at("%w: it has no schema %s, %s, or name another database or schema: %w", store.ErrNotFound, s.db.set.schema, once, fs.ErrNotExist)
	}
	pending, err := s.db.pendingMigrations(c)
	switch {
	case err != nil:
		return err
	case len(pending) > 0 && pending[0].Version == 1:
		return s.db.unversioned()
	case len(pending) > 0:
		return fmt.Errorf("%w, %s", s.db.older(pending), once)
	}
	return s.db.mustBeWhole(c)
}

// upToDate reports whether no migration is missing. It needs no lock: in most cases nothing is missing, and the lock of
// migrations would serialize engines that start at the same time.
// If none is missing, mustBeWhole looks for a table that was dropped, before a statement needs it, and findLoose for
// functions of an earlier version.
func (s *Store) upToDate(c *conn) (bool, error) {
	there, err := s.db.hasSchema(c)
	if err != nil || !there {
		return false, err
	}
	pending, err := s.db.pendingMigrations(c)
	if err != nil || len(pending) > 0 {
		return false, err
	}
	if err := s.db.mustBeWhole(c); err != nil {
		return false, err
	}
	names, err := findLoose(c)
	return len(names) == 0, err
}

// lockKey is the key of an advisory lock of the schema; its argument distinguishes the uses.
// A lock of the server is a number of 64 bits. Two texts may have the same hash; then one waits for the other without
// need.
const lockKey = "hashtextextended('tasq ' || $1 || ' @', 0)"

// lockMigrations begins what one program does at a time, and that may take long.
func lockMigrations(ctx context.Context, c *conn) error {
	if err := c.exec(ctx, "SET LOCAL lock_timeout = '30s'; SET LOCAL statement_timeout = 0; SET LOCAL standard_conforming_strings = on"); err != nil {
		return err
	}
	_, err := c.run("SELECT pg_advisory_xact_lock("+lockKey+")", "migrate")
	return err
}

// applyMigrations runs in one transaction, since PostgreSQL can roll back changes of a schema: a crash leaves the old
// version. An engine that waits for the lock finds nothing left to do, since it checks after it has the lock.
//
// Most migrations only add, so engines of an older version continue to work with the tables. A migration waits for their
// locks, up to lock_timeout, when it changes a table. Before one that only newer engines can work with, all engines are
// fenced, see fenceAll.
func (s *Store) applyMigrations(ctx context.Context, c *conn) error {
	if err := lockMigrations(ctx, c); err != nil {
		return err
	}
	there, err := s.db.hasSchema(c)
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
	pending, err := s.db.pendingMigrations(c)
	if err != nil {
		return err
	}
	oldest, err := s.oldestAfter(c, pending)
	if err != nil {
		return err
	}
	// The files name tables without a schema, since the user chooses its name.
	if err := c.exec(ctx, "SET LOCAL search_path = "+ownPath); err != nil {
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
	if err := tighten(c); err != nil || len(pending) == 0 {
		return err
	}
	_, err = c.run("INSERT INTO @.meta (name, value) VALUES ('"+oldestProgram+"', $1) ON CONFLICT (name) DO UPDATE SET value = $1", oldest)
	return err
}

// oldestProgram is the row of the table meta that has the oldest program that may run on the schema, as the last
// migration that it knows.
const oldestProgram = "oldest_program"

// readOldest returns 0 if the schema was made by a program that recorded none.
func readOldest(c *conn) (int64, error) {
	oldest, _, err := c.number("SELECT value FROM @.meta WHERE name = '" + oldestProgram + "'")
	return oldest, err
}

// oldestAfter returns the oldest program that may run after the missing migrations. If that excludes programs that could run
// before, all engines are fenced first.
func (s *Store) oldestAfter(c *conn, pending []sqlkit.Migration) (int64, error) {
	oldest := int64(sqlkit.Oldest(pending))
	if len(pending) == 0 || pending[0].Version == 1 {
		return oldest, nil
	}
	before, err := readOldest(c)
	if err != nil || oldest <= max(before, 1) {
		return max(before, 1), err
	}
	return oldest, s.fenceAll(c)
}

// fenceAll declares all engines dead, in the transaction of a migration that older programs cannot run with. Each of them
// notices at its next commit or heartbeat, and joins again if it knows enough of the schema; see mayRun.
//
//	old engine    commits, with its row in processes locked
//	migration       UPDATE processes waits for that commit, and locks the row
//	old engine      its next commit waits for the row
//	migration     changes tables, COMMIT
//	old engine    its row is dead: it joins, and is refused
//
// The lock "join" makes an engine that joins meanwhile wait, so that it reads the new oldest program.
func (s *Store) fenceAll(c *conn) error {
	if err := lockJoins(c); err != nil {
		return err
	}
	_, err := c.run("UPDATE @.processes SET state = 'dead' WHERE state = 'live'")
	return err
}

// mayRun returns an error if this program cannot run on the schema, or not beside an engine that has it open: one of a program
// that could not read the entries that this one writes.
func (s *Store) mayRun(c *conn) error {
	if _, err := s.db.pendingMigrations(c); err != nil {
		return err
	}
	var err error
	failed := c.each("SELECT id, name, reads::bigint FROM @.processes WHERE state = 'live' AND reads < $1 ORDER BY id LIMIT 1", []any{format},
		func(r *tables.Row) error {
			err = s.db.at("%w: engine %d (%s) belongs to an older program, which reads journal entries up to format %d, and this program writes "+
				"format %d: stop that one first", store.ErrOwned, r.Number(), r.Text(), r.Number(), format)
			return r.Err
		})
	return cmp.Or(failed, err)
}

// tooOld is the error of an engine that was fenced by a migration which its program cannot run with.
func (db database) tooOld(err error) error {
	return db.at("%w: a newer program has migrated it while this one had it open: everything that was acknowledged is there; stop this "+
		"program, and start the newer one: %w", store.ErrLost, err)
}

// migrations reads the migrations in a folder schema.
func migrations(files fs.FS) ([]sqlkit.Migration, error) {
	folder, err := fs.Sub(files, "schema")
	if err != nil {
		return nil, err
	}
	return sqlkit.Load(folder)
}

// pendingMigrations lists the migrations that the schema lacks.
// The list of versions and the checksums are compared: a schema that only later programs can use, or one whose migrations
// were other texts, is an error.
func (db database) pendingMigrations(c *conn) ([]sqlkit.Migration, error) {
	known, err := migrations(db.set.schemaFiles)
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
	oldest := int64(0)
	if len(applied) > len(known) {
		if oldest, err = readOldest(c); err != nil {
			return nil, err
		}
	}
	pending, err := sqlkit.Pending(known, applied, int(oldest))
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
		return s.db.foreign(known.Message)
	}
	return fmt.Errorf("migration %d (%s): %w", m.Version, m.Name, err)
}
