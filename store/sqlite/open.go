package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
)

// The defaults of an Opener.
const (
	DefaultWindow = 2048                   // commands
	DefaultAge    = 100 * time.Millisecond // how old the tables may be for other programs
)

// applicationID marks a file as one of Tasq's ("TASQ").
const applicationID = 0x54415351

//go:embed schema/*.sql
var schemaFiles embed.FS

// Option changes how [File] opens the database.
type Option func(*settings)

// LoseLastCommits makes commits return before the disk has them (PRAGMA synchronous=NORMAL). Acknowledged commands
// survive the death of the process, but a power failure may lose the last commits. The file remains consistent.
func LoseLastCommits() Option { return func(s *settings) { s.synchronous = "NORMAL" } }

// Window limits how many commands, and for how long, the tables may lag behind the journal for other programs that read
// the file. Zero means the default, [DefaultWindow] and [DefaultAge]. A larger window writes less, and makes opening a
// file after a crash take longer.
func Window(commands int, age time.Duration) Option {
	return func(s *settings) {
		if commands > 0 {
			s.window = commands
		}
		if age > 0 {
			s.age = age
		}
	}
}

// A later option wins over an earlier one.
func newSettings(opts []Option) settings {
	set := settings{synchronous: "FULL", window: DefaultWindow, age: DefaultAge}
	for _, o := range opts {
		o(&set)
	}
	return set
}

type file struct {
	path string
	set  settings
}

// File returns an Opener for a SQLite file, which is created if it does not exist. Opening it returns an error that
// wraps [store.ErrOwned] while another process, or another store of this process, owns it; [store.ErrCorrupt] if it is
// damaged or belongs to another program, in which case it was not changed; [store.ErrNewer] if a newer version of Tasq
// wrote it; or [store.ErrReadOnly] if the file or its directory cannot be written.
//
// With Options.ReadOnly the file is read without owning it, also while a process owns it, up to its last commit.
func File(path string, opts ...Option) store.Opener { return file{path: path, set: newSettings(opts)} }

// Open implements [store.Opener].
func (f file) Open(ctx context.Context, o store.Options) (store.Store, error) {
	path, err := resolve(f.path)
	if err != nil {
		return nil, err
	}
	s := newStore(path, f.set, o)
	if o.ReadOnly {
		return s.openReader()
	}
	if s.lock, err = own(path); err != nil {
		return nil, err
	}
	if err := s.openFile(ctx); err != nil {
		return nil, errors.Join(explain(path, err), s.shut())
	}
	return s, nil
}

func newStore(path string, set settings, o store.Options) *Store {
	s := &Store{mu: newMutex(), path: path, set: set, now: o.Now, log: o.Logger, nets: new(tables.Nets), window: newWindow(), version: -1,
		space: space{free: freeSpace}}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	// The timer is stopped before it can fire, and is set when the window gets its first command.
	s.timer = time.AfterFunc(time.Hour, s.onAge)
	s.timer.Stop()
	return s
}

func dsn(path, mode string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?mode=" + mode
}

// openFile creates the connections of an owner, and brings the database up to date.
//
// The pragmas of the writer:
//
//	busy_timeout          waits for "tasq" in another process, which holds the lock shortly while it leaves a command
//	page_size             before the file is created, since it cannot be changed once there is a log
//	cache_size            32 MB, for the newest pages of the journal and of the live rows
//	temp_store            no temporary files: the system's disk may be small or read-only
//	application_id        before the first table, so that after a crash the file is recognized as one of Tasq's
//	journal_mode          readers and the writer do not block each other, and a commit is one sync
//	synchronous           FULL syncs the log at each commit; NORMAL only before the log is moved into the database
//	wal_autocheckpoint    40 MB. Idle checkpoints earlier, and keepShort makes it less on a small disk
func (s *Store) openFile(ctx context.Context) error {
	var err error
	s.w, err = connect(ctx, dsn(s.path, "rwc"), "busy_timeout=10000", "page_size="+strconv.Itoa(pageSize), "cache_size=-32768",
		"temp_store=MEMORY",
		"application_id="+strconv.Itoa(applicationID), "journal_mode=WAL", "synchronous="+s.set.synchronous,
		"wal_autocheckpoint="+strconv.Itoa(fullLogPages))
	if err != nil {
		return err
	}
	if err := s.mustBeWAL(); err != nil {
		return err
	}
	if s.set.synchronous == "FULL" {
		s.wal.path = s.path + "-wal"
	}
	if err := s.keepShort(); err != nil {
		return explain(s.path, err)
	}
	// The context is not that of the caller, since the connection stays in the pool after the view. query_only protects
	// the tables a second time, since the user's SQL uses these connections.
	s.readers = newReaders(func(context.Context) (*conn, error) {
		return connect(context.Background(), dsn(s.path, "rw"), "busy_timeout=10000", "cache_size=-16384",
			"temp_store=MEMORY",
			"query_only=ON")
	})
	return s.prepare()
}

// mustBeWAL checks that the file system supports a write-ahead log. Otherwise SQLite silently keeps its old mode, in
// which readers block the writer.
func (s *Store) mustBeWAL() error {
	mode := ""
	err := s.w.each("PRAGMA journal_mode", nil, func(r *tables.Row) error {
		mode = r.Text()
		return r.Err
	})
	if err == nil && mode != "wal" {
		err = fmt.Errorf("%s: SQLite cannot keep a write-ahead log here (its mode is %q); "+
			"put the file on a local disk", s.path, mode)
	}
	return err
}

// prepare migrates the schema and replays the entries that the tables lack.
// An owner that crashed has left entries which the tables lack; recover writes these before the first command, so the
// window begins empty.
func (s *Store) prepare() error {
	migrated, err := migrate(s.w, s.now())
	if err != nil {
		return explain(s.path, err)
	}
	// The schema is written to the file itself, so that the tables exist even if the file is read or copied without the
	// log.
	if migrated && s.memory == nil {
		if err := s.w.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return err
		}
	}
	// After the migration, which creates the table of the token, and before the journal is replayed: a second engine
	// that is still writing would add entries that this one does not see.
	if s.memory == nil {
		if err := s.claim(); err != nil {
			return err
		}
	}
	s.rows = newRowWriter(s.w, "")
	if err := s.makeIndexes(); err != nil {
		return explain(s.path, err)
	}
	return s.recover()
}

const migrationsTable = `CREATE TABLE IF NOT EXISTS migrations (
    version  INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL,
    checksum TEXT    NOT NULL,
    applied  INTEGER NOT NULL
)`

// migrate applies the missing migrations, all or none, and creates the table of records.
//
// The transaction is IMMEDIATE, as every write transaction; see begin. There is one for all migrations: SQLite can roll
// back changes of a schema, so a crash leaves the old version. It also creates the table of migrations.
func migrate(c *conn, now time.Time) (bool, error) {
	known, err := migrations()
	if err != nil {
		return false, err
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	changed, err := applyMigrations(c, known, now)
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		_ = c.exec("ROLLBACK") // the first error is the one to report
		return false, err
	}
	return changed, nil
}

// They are part of the program, so each version of it knows exactly its own schema and those before.
func migrations() ([]sqlkit.Migration, error) {
	folder, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	return sqlkit.Load(folder)
}

func applyMigrations(c *conn, known []sqlkit.Migration, now time.Time) (bool, error) {
	if err := c.exec(migrationsTable); err != nil {
		return false, err
	}
	pending, err := pendingMigrations(c, known)
	if err != nil {
		return false, err
	}
	for _, m := range pending {
		if err := c.exec(m.SQL); err != nil {
			return false, fmt.Errorf("migration %d (%s): %w", m.Version, m.Name, err)
		}
		if err := c.run("INSERT INTO migrations (version, name, checksum, applied) VALUES (?, ?, ?, ?)",
			int64(m.Version), m.Name, m.Checksum, state.Micros(now)); err != nil {
			return false, err
		}
	}
	if len(pending) > 0 {
		err := c.run("INSERT INTO meta (name, value) VALUES ('"+oldestProgram+"', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
			int64(sqlkit.Oldest(pending)))
		if err != nil {
			return false, err
		}
	}
	return len(pending) > 0, c.exec(domain.Schema)
}

// oldestProgram is the row of the table meta that has the oldest program that may run on the schema, as the last
// migration that it knows. A file that was made by a program that recorded none has no such row.
const oldestProgram = "oldest_program"

func pendingMigrations(c *conn, known []sqlkit.Migration) ([]sqlkit.Migration, error) {
	var applied []sqlkit.Applied
	err := c.each("SELECT version, checksum FROM migrations ORDER BY version", nil, func(r *tables.Row) error {
		applied = append(applied, sqlkit.Applied{Version: int(r.Number()), Checksum: r.Text()})
		return r.Err
	})
	if err != nil {
		return nil, err
	}
	oldest := int64(0)
	if len(applied) > len(known) {
		if oldest, _, err = c.number("SELECT value FROM meta WHERE name = '" + oldestProgram + "'"); err != nil {
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
