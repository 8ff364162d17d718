package source

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
)

// Database describes the database, as far as that is cheap to find out. It has no credentials, and no folder.
type Database struct {
	Kind    string `json:"kind"`    // "SQLite" or "PostgreSQL"
	Version string `json:"version"` // of SQLite, or of the server
	Name    string `json:"name"`    // the name of the file, "" in memory; or USER@SERVER/DATABASE, and the schema
	Size    int64  `json:"size"`    // bytes of the file, or of Tasq's tables
	WAL     int64  `json:"wal"`     // bytes of the write-ahead log beside the file; 0 for a server
	Schema  int64  `json:"schema"`  // the number of the last migration
	// Entry is the position of the newest entry of the journal, 0 if it is empty, and EntryAt its time.
	Entry   int64     `json:"entry"`
	EntryAt time.Time `json:"entry_at,omitzero"`
	// Behind is how far the stored tables are behind the journal, in positions. What is read includes all entries nevertheless. A server
	// writes both at once.
	Behind int64 `json:"behind"`
	// ClockAhead is how far the clock of the server is ahead of the program's, in seconds; negative if it is behind, 0 for a file.
	ClockAhead float64 `json:"clock_ahead"`
	// Due is the number of jobs that call a function, are due and have not begun, and DueSince when the first of them was due.
	Due      int       `json:"due"`
	DueSince time.Time `json:"due_since,omitzero"`
}

// ReadDatabase describes the database of a reader.
func ReadDatabase(ctx context.Context, r store.Reader, now time.Time) (*Database, error) {
	d := new(Database)
	describe := d.sqlite
	if domain.DialectOf(r.DB()) == domain.Postgres {
		describe = d.postgres
	}
	newest, err := r.Journal(ctx, store.JournalFilter{Desc: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, e := range newest {
		d.Entry, d.EntryAt = e.Seq, e.At
	}
	if err := d.due(ctx, r.DB(), now); err != nil {
		return nil, fmt.Errorf("count the jobs that are due: %w", err)
	}
	if err := describe(ctx, r.DB(), now); err != nil {
		return nil, fmt.Errorf("describe the database: %w", err)
	}
	return d, nil
}

// due counts the jobs that are due, by their index: a Backlog also reads all live items.
func (d *Database) due(ctx context.Context, db domain.DB, now time.Time) error {
	var first sql.NullInt64
	err := value(ctx, db, "SELECT count(*), min(due) FROM "+domain.Table(db, "jobs")+" WHERE state IN ('pending', 'running', 'waiting') AND state = 'pending' "+ // the first is the condition of the index
		"AND kind IN ('run', 'call') AND due <= "+strconv.FormatInt(now.UnixMicro(), 10), &d.Due, &first)
	if first.Valid {
		d.DueSince = time.UnixMicro(first.Int64).UTC()
	}
	return err
}

// value reads the only row of a query.
func value(ctx context.Context, db domain.DB, query string, into ...any) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	if rows.Next() {
		err = rows.Scan(into...)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

func (d *Database) sqlite(ctx context.Context, db domain.DB, _ time.Time) error {
	d.Kind = "SQLite"
	var pages, size, seq, projected int64
	var number, name, file sql.NullString
	err := errors.Join(
		value(ctx, db, "SELECT sqlite_version()", &d.Version),
		value(ctx, db, "PRAGMA main.page_count", &pages), value(ctx, db, "PRAGMA main.page_size", &size),
		value(ctx, db, "PRAGMA database_list", &number, &name, &file), // main is the first
		value(ctx, db, "SELECT coalesce(max(version), 0) FROM main.migrations", &d.Schema),
		value(ctx, db, "SELECT coalesce(max(seq), 0) FROM main.journal", &seq),
		value(ctx, db, "SELECT value FROM main.meta WHERE name = 'projected_seq'", &projected))
	d.Size, d.Behind = pages*size, max(seq-projected, 0)
	if file.String != "" {
		d.Name = filepath.Base(file.String)
		if info, err := os.Stat(file.String + "-wal"); err == nil {
			d.WAL = info.Size()
		}
	}
	return err
}

func (d *Database) postgres(ctx context.Context, db domain.DB, now time.Time) error {
	d.Kind = "PostgreSQL"
	var clock int64
	migrations := domain.Table(db, "schema_migrations")
	schema, _, _ := strings.Cut(migrations, ".")
	err := value(ctx, db, "SELECT current_setting('server_version'), current_user || '@' || coalesce(host(inet_server_addr()), 'localhost') || '/' || "+
		"current_database() || ', schema "+schema+"', (extract(epoch from clock_timestamp()) * 1000000)::bigint",
		&d.Version, &d.Name, &clock)
	if err != nil {
		return err
	}
	d.ClockAhead = time.UnixMicro(clock).Sub(now).Round(time.Millisecond).Seconds()
	return errors.Join(value(ctx, db, "SELECT coalesce(max(version), 0) FROM "+migrations, &d.Schema),
		value(ctx, db, "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = "+
			"'"+schema+"'::regnamespace", &d.Size))
}
