package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// DefaultSchema is the schema of the tables unless [Schema] names another one.
const DefaultSchema = "tasq"

// Option changes how [Open] opens the database.
type Option func(*settings)

type settings struct {
	schema    string // "" for that of the connection string, or DefaultSchema
	noMigrate bool
	alone     bool
	poll      time.Duration // how often an engine behind a pooler polls for changes; 0 without a pooler
	patience  time.Duration // how long the server may take to answer a statement of the writer
	attention time.Duration // the same for heartbeats and notifications
	resolve   time.Duration // how long the outcome of a commit is queried after its connection was lost
	keepAhead time.Duration // how long a transaction that was begun ahead waits for its update
	window    time.Duration // how long after a commit its rows are written at the latest; 0 for in the commit

	fewestEnded, fewestLarge int // see parts.go

	schemaFiles fs.FS // the migrations, in a folder schema
}

// Schema sets the schema of the tables: lower-case letters, digits and '_', at most 40 characters. "" is
// [DefaultSchema]. Each schema is a separate database of cases.
//
// The parameter tasq_schema of the connection string has the same effect, if this option is not given.
func Schema(name string) Option {
	return func(s *settings) {
		if name != "" {
			s.schema = name
		}
	}
}

// NoMigrate makes Open fail if the schema is not up to date, instead of migrating it, for a role that must not change
// tables. The error wraps [store.ErrOlder]; another role must then open it once, with a program of the same version.
func NoMigrate() Option { return func(s *settings) { s.noMigrate = true } }

// Alone opens the database for one engine only, as a file is: opening fails while another engine has it open, and no
// other engine can open it meanwhile. Tools that maintain a database need that.
func Alone() Option { return func(s *settings) { s.alone = true } }

// Poll is for a connection string of a pooler that assigns sessions per transaction, such as PgBouncer with pool_mode =
// transaction. The engine then keeps no state in sessions and receives no notifications; it polls for the changes of
// other engines and programs at this interval, where 0 means one second. A dead engine is detected by its missing
// heartbeats. [Alone] is not possible.
//
// The parameter tasq_poll of the connection string has the same effect:
// "postgres://user@pooler:6432/database?tasq_poll=1s".
func Poll(every time.Duration) Option {
	return func(s *settings) { s.poll = cmp.Or(max(every, 0), busyPace) }
}

// Window makes an engine that has the database for itself write the rows of the tables after its commits, at most about
// age later, instead of in them. 0 is the default: in them. A commit then takes less of the server, which writes a row once that several
// commands change: an engine with one caller answers sooner, and one with many completes more.
//
// Nothing is lost by that: a commit is durable as before, and what was not written to the tables before a crash is written when an engine opens the
// database. What reads through the engine or the tasq command sees all that was committed. Only SQL of other
// programs on the tables of Tasq sees what is at most about age old: a program that writes a foreign key to a case which another
// connection has just started must not use it. While other engines have the database open, it has no effect; nor through a pooler.
//
// The parameter tasq_window of the connection string has the same effect.
func Window(age time.Duration) Option {
	return func(s *settings) { s.window = min(max(age, 0), maxAge) }
}

// database identifies a schema and the options to open it.
type database struct {
	dsn    string
	set    settings
	name   string // for errors, without the password
	config *pgx.ConnConfig
	sql    *statements
}

// opener implements [store.Opener].
type opener struct {
	dsn string
	set settings
}

// Open returns an Opener for a PostgreSQL database, named by a connection string: "postgres://user@host/database", or
// keywords and values. It creates the tables if they do not exist. Opening returns an error that wraps [store.ErrOwned]
// while an engine has the schema open [Alone]; [store.ErrNewer] if a newer version of Tasq has changed the tables so that this one cannot use
// them; or [store.ErrUnavailable] if the server cannot be reached.
//
// With Options.ReadOnly the database can be read while an engine has it open.
func Open(dsn string, opts ...Option) store.Opener {
	set := settings{patience: patience, attention: attention, resolve: resolve, keepAhead: keepAhead,
		fewestEnded: fewestEnded, fewestLarge: fewestLarge, schemaFiles: schemaFiles}
	for _, o := range opts {
		o(&set)
	}
	return opener{dsn: dsn, set: set}
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// database parses the connection string.
func (o opener) database() (database, error) {
	db := database{dsn: o.dsn, set: o.set}
	var err error
	if db.config, err = pgx.ParseConfig(o.dsn); err != nil {
		return db, fmt.Errorf("the connection string of the database: %w", err)
	}
	if err := db.takeParameters(); err != nil {
		return db, err
	}
	if db.set.poll > 0 {
		db.set.window = 0
		// Named statements belong to a session of the server, and the next transaction has another session.
		db.config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // unnamed statements
	}
	db.config.RuntimeParams["client_encoding"] = "UTF8" // whatever the role and the database have
	if db.config.RuntimeParams["application_name"] == "" {
		db.config.RuntimeParams["application_name"] = "tasq"
	}
	if db.config.ConnectTimeout == 0 {
		db.config.ConnectTimeout = connectTimeout
	}
	db.sql = newStatements(db.set.schema)
	db.name = fmt.Sprintf("PostgreSQL database %s on %s", db.config.Database,
		net.JoinHostPort(db.config.Host, strconv.Itoa(int(db.config.Port))))
	if db.set.schema != DefaultSchema {
		db.name += ", schema " + db.set.schema
	}
	return db, nil
}

// Valid returns an error if the connection string or the name of the schema cannot be used. It connects to nothing.
func (o opener) Valid() error {
	_, err := o.database()
	return err
}

const (
	// patience is longer than the server's own limits for a statement, see writerNeeds: after that time, the connection
	// is lost.
	patience = 45 * time.Second

	// attention is shorter, since an engine that sends no heartbeats is declared dead. None of those statements takes
	// long.
	attention = 15 * time.Second

	// resolve is longer than the restart of a server with little to recover.
	resolve = 30 * time.Second
)

// connectTimeout limits an attempt to connect, unless the connection string does.
const connectTimeout = 10 * time.Second

// Open implements [store.Opener].
func (o opener) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	db, err := o.database()
	if err != nil {
		return nil, err
	}
	s := newStore(db, opts)
	if opts.ReadOnly {
		err = s.openReader(ctx)
	} else {
		err = s.openWriter(ctx)
	}
	if err != nil {
		return nil, errors.Join(db.explain(err), s.shut((*conn).close))
	}
	return s, nil
}

func newStore(db database, opts store.Options) *Store {
	s := &Store{
		revs: make(revisions),
		db:   db, now: opts.Now, log: opts.Logger, nets: new(tables.Nets), readOnly: opts.ReadOnly, shared: opts.Shared && !db.set.alone,
		// Random, since it is the key of a lock that is taken before the engine has a row with a number.
		token: rand.Int64(),
	}
	s.hints, s.window = newHints(s), &window{s: s}
	s.ending, s.end = context.WithCancel(context.Background())
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.readers = sqlkit.NewPool(maxReaders, func(ctx context.Context) (*conn, error) { return db.connect(ctx, readerNeeds...) },
		(*conn).close, errClosed)
	return s
}

// Migrate creates the schema, or applies the migrations that it lacks and makes the indexes that were dropped, without joining the engines that have the database open. Migrations that only
// add can be applied beside engines of older programs; the others fence them.
func (o opener) Migrate(ctx context.Context) error {
	db, err := o.database()
	if err != nil {
		return err
	}
	s := newStore(db, store.Options{})
	if s.w, err = s.connectWriter(ctx); err == nil {
		err = errors.Join(s.migrate(ctx, s.w), s.makeIndexes(ctx, s.w))
	}
	return errors.Join(db.explain(err), s.shut((*conn).close))
}

// openReader checks that the schema has this version. A reader takes no lock and has no row, so there can be any number
// of them, and engines need not notice their end.
func (s *Store) openReader(ctx context.Context) error {
	c, err := s.readers.Get(ctx)
	if err != nil {
		return err
	}
	defer func() { s.readers.Put(c, !c.gone()) }()
	there, err := s.db.hasSchema(c)
	if err != nil {
		return err
	}
	if !there {
		return s.db.noSchema()
	}
	pending, err := s.db.pendingMigrations(c)
	switch {
	case err != nil:
		return err
	case len(pending) > 0 && pending[0].Version == 1:
		return s.db.unversioned()
	case len(pending) > 0:
		return s.db.older(pending)
	}
	return s.db.mustBeWhole(c)
}

func (db database) noSchema() error {
	return db.at("%w: it has no schema %s: create it with tasq migrate or an engine, or name another database or schema: %w", store.ErrNotFound,
		db.set.schema, fs.ErrNotExist)
}

func (db database) older(pending []sqlkit.Migration) error {
	return db.at("%w: its tables lack migration %d (%s)", tables.Older(pending), pending[0].Version, pending[0].Name)
}

// openWriter creates the schema, takes the locks of an engine, and joins the others.
//
// The order of the steps matters:
//
//	connectWriter     a session
//	migrate           the tables that the rest needs, one engine at a time
//	openPresence      the lock of a live engine; before its row, since a row without the lock is that of a dead engine
//	join              its row, with a number and an epoch; rows of dead engines are removed
//
// A crash after any of these steps leaves at most a row, which the next engine that joins removes.
func (s *Store) openWriter(ctx context.Context) error {
	w, err := s.connectWriter(ctx)
	if err != nil {
		return err
	}
	s.w = w
	if err := s.migrate(ctx, w); err != nil {
		return err
	}
	if err := errors.Join(s.warnOfRecords(w), s.warnOfRights(w), s.warnOfIndexes(w)); err != nil {
		return err
	}
	if s.presence, err = s.openPresence(ctx); err != nil {
		return err
	}
	return s.join(ctx, w)
}

// connectWriter opens the connection that commits. Through a pooler, each of its transactions holds a lock that
// identifies its server process.
func (s *Store) connectWriter(ctx context.Context) (*conn, error) {
	w, err := s.db.connectFor(ctx, s.db.set.patience, writerNeeds...)
	if err == nil && w.opening != "" {
		w.opening += fmt.Sprintf(", pg_advisory_xact_lock_shared(hashtextextended('tasq commit %d @', 0))", s.token)
	}
	return w, err
}
