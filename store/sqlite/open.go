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

// What an Opener uses unless an option says otherwise.
const (
	DefaultWindow = 2048                   // commands
	DefaultAge    = 100 * time.Millisecond // how far other programs' view may lag
)

// applicationID marks a file as one of Tasq's ("TASQ").
const applicationID = 0x54415351

//go:embed schema/*.sql
var schemaFiles embed.FS

// Option changes how [File] keeps its database.
type Option func(*settings)

// LoseLastCommits does not wait for the disk before a command is acknowledged (PRAGMA synchronous=NORMAL). What was
// acknowledged survives the death of the process, but a power failure may take the last commits with it. The file stays
// whole.
func LoseLastCommits() Option { return func(s *settings) { s.synchronous = "NORMAL" } }

// Window bounds how many commands, and how long, the tables may lag behind the journal for other programs that read the
// file. The zero value of either is its default, [DefaultWindow] and [DefaultAge]. A larger window writes less, and
// opening a file after a crash takes longer.
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

// File keeps cases in a SQLite file, which is made if it is not there. Opening it returns an error that wraps
// [store.ErrOwned] while another process, or another store of this one, owns it; [store.ErrCorrupt] if it is damaged or
// belongs to another program, and then it was not touched; [store.ErrNewer] if a newer version of Tasq wrote it; or
// [store.ErrReadOnly] if the file or its folder cannot be written.
//
// With Options.ReadOnly the file is read without owning it, also while a process owns it, exact to its last commit.
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
	s := &Store{mu: newMutex(), path: path, set: set, now: o.Now, log: o.Logger, nets: new(tables.Nets), window: newWindow(), version: -1}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.timer = time.AfterFunc(time.Hour, s.onAge)
	s.timer.Stop()
	return s
}

func dsn(path, mode string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?mode=" + mode
}

// openFile makes the connections of an owner, and brings the database up to date.
//
// The pragmas of the writer:
//
//	busy_timeout          waits for "tasq" in another process, which leaves a command and holds the lock for an instant
//	page_size             before the file is made: it cannot be changed once there is a log
//	cache_size            32 MB. The newest pages of the journal and of the live rows stay in it
//	temp_store            no temporary files: the disk of the system may be small, or only readable
//	application_id        before the first table, so that a crash after it leaves a file that is known as one of Tasq's
//	journal_mode          readers do not block the writer, nor the other way round, and a commit is one sync
//	synchronous           FULL syncs the log at each commit; NORMAL only before the log is moved into the database
//	wal_autocheckpoint    in pages, 40 MB. Idle does it earlier; see logFull, too, which depends on it
func (s *Store) openFile(ctx context.Context) error {
	var err error
	s.w, err = connect(ctx, dsn(s.path, "rwc"), "busy_timeout=10000", "page_size=4096", "cache_size=-32768",
		"temp_store=MEMORY",
		"application_id="+strconv.Itoa(applicationID), "journal_mode=WAL", "synchronous="+s.set.synchronous,
		"wal_autocheckpoint=10000")
	if err != nil {
		return err
	}
	if err := s.mustBeWAL(); err != nil {
		return err
	}
	if s.set.synchronous == "FULL" {
		s.wal.path = s.path + "-wal"
	}
	// The context is not that of the caller: the connection lives on in the pool when the view that made it is over.
	// query_only is a second guard of the tables, as the user's SQL comes through these connections.
	s.readers = newReaders(func(context.Context) (*conn, error) {
		return connect(context.Background(), dsn(s.path, "rw"), "busy_timeout=10000", "cache_size=-16384",
			"temp_store=MEMORY",
			"query_only=ON")
	})
	return s.prepare()
}

// mustBeWAL makes sure that the file system bears a write-ahead log. SQLite keeps its old mode silently where it does
// not, and then readers would block the writer.
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

// prepare migrates the schema and replays what the tables lack.
func (s *Store) prepare() error {
	migrated, err := migrate(s.w, s.now())
	if err != nil {
		return explain(s.path, err)
	}
	// The schema goes into the file itself, so that it has its tables also where it is read or copied without the log.
	if migrated && s.memory == nil {
		if err := s.w.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return err
		}
	}
	// After the migration, which makes the table of the token, and before anything of the journal is replayed: a second
	// engine that still writes would add entries that this one does not see.
	if s.memory == nil {
		if err := s.claim(); err != nil {
			return err
		}
	}
	s.rows = newRowWriter(s.w, "")
	return s.recover()
}

const migrationsTable = `CREATE TABLE IF NOT EXISTS migrations (
    version  INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL,
    checksum TEXT    NOT NULL,
    applied  INTEGER NOT NULL
)`

// migrate applies the migrations that the database lacks, all or none, and makes the table of records.
//
// The transaction is IMMEDIATE, as for every write; see begin. It is one for all migrations: SQLite's changes of schemas can be rolled
// back, so a crash in the middle leaves the version that was there. The table of migrations is made in it, too.
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
	return len(pending) > 0, c.exec(domain.Schema)
}

func pendingMigrations(c *conn, known []sqlkit.Migration) ([]sqlkit.Migration, error) {
	var applied []sqlkit.Applied
	err := c.each("SELECT version, checksum FROM migrations ORDER BY version", nil, func(r *tables.Row) error {
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
