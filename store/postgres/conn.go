package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// conn is a connection to the server. The store's own statements use pgx; the user's SQL uses it through database/sql,
// see user.go. It is used by one goroutine at a time, except that a callback that has timed out may still be running
// SQL.
//
// Three timeouts apply, since a call that does not return holds the lock of the store and so blocks the engine:
//
//	lock_timeout, statement_timeout     on the server, see writerNeeds: for a statement that waits or runs for too long
//	patience, within                    in this process, for the store's own statements: the server does not answer
//	supervise                           for the user's SQL, which has no limit: another connection checks that the server runs it
//
// A statement that waited for a lock in vain says whose it was, see blockerSearch.
type conn struct {
	mu  sync.Mutex // held for each call of the driver
	raw *stdlib.Conn
	pg  *pgx.Conn
	sql *statements
	pid uint32          // of the server process; through a pooler, of the last transaction that began
	ctx context.Context // may cancel a query, which closes the connection; not used for writers, whose transaction would be rolled back

	patience time.Duration  // how long the server may take to answer the store's own statements; 0 for no limit
	watchdog *time.Timer    // closes the connection after that time
	working  func() bool    // reports whether the server is busy with a statement of this connection
	blocker  *blockerSearch // finds the session that a statement waits for; nil if that is of no use

	prepared map[string]*pgconn.StatementDescription // statements of pipelines, by their texts
	behind   *pipeline                               // results of what was sent behind a commit that were not read yet; nil if there are none
	begun    int64                                   // the id of the transaction that was begun behind a commit, once it was read

	start   string // when the server was started, as read by the first transaction through a pooler
	opening string // what each transaction begins with; "" if the session is set up only once, see setup
}

// connect opens a connection and configures its session.
func (db database) connect(ctx context.Context, needs ...setting) (*conn, error) {
	return db.connectFor(ctx, 0, needs...)
}

// connectFor is connect with a limit on how long the server may take to answer. Without a limit, a connection to a
// machine that has lost its power is lost only when the TCP timeout ends, after minutes.
func (db database) connectFor(ctx context.Context, patience time.Duration, needs ...setting) (*conn, error) {
	given, err := stdlib.GetConnector(*db.config).Connect(ctx)
	if err != nil {
		return nil, err
	}
	raw := given.(*stdlib.Conn)
	c := &conn{raw: raw, pg: raw.Conn(), sql: db.sql, ctx: context.Background(), patience: patience}
	takeEncoded(c.pg.TypeMap())
	// The timer is reset for each call, which costs little compared with a round trip. The initial hour never ends.
	c.watchdog = time.AfterFunc(time.Hour, func() { _ = c.cut() })
	c.watchdog.Stop()
	c.working = func() bool { return db.isWorking(c.pid) }
	err = db.checkServer(c.pg.PgConn().ParameterStatus)
	if err == nil {
		err = c.setUp(ctx, db, needs)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	// Not before: while a connection is set up, it waits for no lock.
	c.blocker = newBlockerSearch(func(ctx context.Context) string { return db.findBlocker(ctx, c.pid) })
	return c, nil
}

func (c *conn) close() error { return c.raw.Close() }

// cut closes the connection as the death of this process would: without the termination message, which close would wait
// to send. The server rolls back when it finds the connection closed.
func (c *conn) cut() error { return c.pg.PgConn().Conn().Close() }

// gone reports whether the connection was lost.
// The driver closes the connection after an error that leaves the protocol in an unknown state.
func (c *conn) gone() bool { return c.pg.IsClosed() }

// within runs f, which calls the server, and closes the connection if the server does not answer.
func (c *conn) within(f func() error) error {
	if c.patience == 0 {
		return c.watch(f)
	}
	c.watchdog.Reset(c.patience)
	err := c.watch(f)
	// A timer that fires just after the answer arrived is no error of this call; the next call finds the connection
	// closed.
	if !c.watchdog.Stop() && err != nil {
		err = fmt.Errorf("the server has not answered for %s: %w", c.patience, err)
	}
	return err
}

// watch runs f, and finds the session that it waits for. Through a pooler, the server process is known only within a transaction.
func (c *conn) watch(f func() error) error {
	if c.opening != "" && c.pg.PgConn().TxStatus() == 'I' {
		return f()
	}
	return c.blocker.during(f)
}

// supervise runs f, which calls the server for an unlimited time, and closes the connection if the server is not
// running the statement.
func (c *conn) supervise(f func() error) error {
	if c.patience == 0 {
		return c.watch(f)
	}
	over := make(chan struct{})
	defer close(over)
	defer time.AfterFunc(c.patience, func() { c.look(over) }).Stop()
	return c.watch(f)
}

// While the user's SQL runs, silence does not show whether the server still works. If the server process is not active,
// or the server does not answer on another connection, no result will come.
func (c *conn) look(over chan struct{}) {
	again := time.NewTicker(c.patience)
	defer again.Stop()
	for {
		working := c.working()
		select {
		case <-over:
			return
		default:
		}
		if !working {
			_ = c.cut()
			return
		}
		select {
		case <-over:
			return
		case <-again.C:
		}
	}
}

// isWorking reports whether a server process runs a statement; false if the server does not answer.
func (db database) isWorking(pid uint32) bool {
	ctx, cancel := context.WithTimeout(context.Background(), db.set.attention)
	defer cancel()
	c, err := db.connectFor(ctx, db.set.attention)
	if err != nil {
		return false
	}
	// It uses a new connection: that of the fleet may be blocked by the same failed server.
	_, working, err := c.number("SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'", int32(pid))
	return errors.Join(err, c.close()) == nil && working
}

// patiently disables the limit on the server's answer until the returned function is called.
func (c *conn) patiently() (end func()) {
	before := c.patience
	c.patience = 0
	return func() { c.patience = before }
}

// exec runs statements without preparing them.
func (c *conn) exec(ctx context.Context, query string) error {
	_, err := c.simple(ctx, query)
	return err
}

// last runs statements without preparing them, and returns the result of the last one.
func (c *conn) last(ctx context.Context, query string) (*pgconn.Result, error) {
	results, err := c.simple(ctx, query)
	if err != nil {
		return nil, err
	}
	return results[len(results)-1], nil
}

// The simple protocol takes several statements in one round trip and prepares none. BEGIN, SAVEPOINT and SET use it.
func (c *conn) simple(ctx context.Context, query string) (results []*pgconn.Result, err error) {
	return c.verbatim(ctx, c.sql.text(query))
}

// verbatim is simple for a text with constants: the schema is not put in, and the text is not cached.
func (c *conn) verbatim(ctx context.Context, query string) (results []*pgconn.Result, err error) {
	// The results of what was sent behind the last commit come first on the connection.
	c.catchUp()
	err = c.within(func() error {
		results, err = c.pg.PgConn().Exec(ctx, query).ReadAll()
		return err
	})
	return results, err
}

// prompt makes the server end a session that is idle in the transaction for too long.
const prompt = "SET LOCAL idle_in_transaction_session_timeout = '5s'"

// transaction runs f, which runs none of the user's SQL, between BEGIN and COMMIT. If this process is stopped in
// between, or the connection is lost, the server soon ends the session and releases its locks, for which other engines
// or the next connection of this engine wait. The statements in set configure the transaction.
func (c *conn) transaction(ctx context.Context, f func() error, set ...string) error {
	if _, err := c.begin(ctx, begin, append([]string{prompt}, set...)...); err != nil {
		return err
	}
	if err := f(); err != nil {
		return errors.Join(err, c.exec(ctx, "ROLLBACK"))
	}
	return c.exec(ctx, "COMMIT")
}

// listOf returns what read makes of the rows of a query.
func listOf[T any](c *conn, query string, args []any, read func(*tables.Row) (T, error)) (all []T, err error) {
	err = c.each(query, args, func(r *tables.Row) error {
		v, err := read(r)
		all = append(all, v)
		return err
	})
	return all, err
}

// each calls f with every row of a query. All rows are read first, since a connection of PostgreSQL runs one query at a
// time, and f may run other statements. Limits bound the number of rows.
func (c *conn) each(query string, args []any, f func(*tables.Row) error) error {
	all, err := c.rows(query, args)
	if err != nil {
		return err
	}
	return each(all, f)
}

func each(all [][]any, f func(*tables.Row) error) error {
	var r tables.Row
	for _, values := range all {
		r.Values = r.Values[:0]
		for _, v := range values {
			r.Values = append(r.Values, driver.Value(v))
		}
		r.Begin()
		if err := f(&r); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) rows(query string, args []any) (all [][]any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	err = c.within(func() error {
		rows, err := c.pg.Query(c.ctx, c.sql.text(query), args...)
		if err == nil {
			all, err = collect(rows)
		}
		return err
	})
	return all, err
}

func collect(rows pgx.Rows) ([][]any, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

// number returns the first column of the only row; found is false if there is no row, or if it is NULL.
func (c *conn) number(query string, args ...any) (n int64, found bool, err error) {
	err = c.each(query, args, func(r *tables.Row) error {
		found = r.Values[0] != nil
		n = r.Number()
		return r.Err
	})
	return n, found, err
}

// run executes a statement that returns no rows, and returns how many it changed.
func (c *conn) run(query string, args ...any) (n int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	err = c.within(func() error {
		tag, err := c.pg.Exec(c.ctx, c.sql.text(query), args...)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// Document implements [tables.Source].
func (c *conn) Document(fingerprint string) (doc string, err error) {
	err = c.each("SELECT net FROM @.definitions WHERE fingerprint = $1", []any{fingerprint}, func(r *tables.Row) error {
		doc = r.Text()
		return r.Err
	})
	return doc, err
}

// Fingerprints implements [tables.Source].
func (c *conn) Fingerprints(ids []workitem.CaseID, f func(workitem.CaseID, string)) error {
	return c.each("SELECT id, fingerprint FROM @.cases WHERE id = ANY($1)", []any{uuids(ids)}, func(r *tables.Row) error {
		f(tables.ID[workitem.CaseID](r), r.Text())
		return r.Err
	})
}

// uuid returns an id in the type that the driver takes.
func uuid[K ~[16]byte](id K) [16]byte { return id }
