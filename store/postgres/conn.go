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

// conn is one connection to the server. The store's own statements run on pgx; the user's come through package
// database/sql, see user.go. It is used by one goroutine at a time but for the user's SQL: a callback that was left behind
// may still be running some.
//
// Three kinds of bounds, since a call that does not return holds the lock of the store, and with it the engine:
//
//	lock_timeout, statement_timeout     the server's, see writerNeeds: a statement that waits or runs for too long fails
//	patience, within                    this side's, for the store's own statements: the server does not answer at all
//	supervise                           for SQL of the user's, which may take any time: another connection asks the server whether it runs
type conn struct {
	mu  sync.Mutex // held for each call of the driver
	raw *stdlib.Conn
	pg  *pgx.Conn
	sql *statements
	pid uint32          // of the server's process; through a pooler, of the last transaction that began
	ctx context.Context // may end a query, and the connection with it; not a writer's, whose transaction would be undone

	patience time.Duration // how long the server may take to answer the store's own statements; 0 for any time
	watchdog *time.Timer   // cuts the connection when that is over
	working  func() bool   // reports whether the server is busy with a statement of this connection

	prepared map[string]*pgconn.StatementDescription // statements of pipelines, by their texts
	behind   *pipeline                               // results of what was sent behind a commit that were not read yet; nil if there are none
	begun    int64                                   // the number of the transaction that was begun behind a commit, once it was read

	start   string // when the server was started, as the first transaction through a pooler has found it
	opening string // what each transaction begins with; "" if the session is set up once, see setup
}

// connect opens a connection and sets what its sessions need.
func (db database) connect(ctx context.Context, needs ...setting) (*conn, error) {
	return db.connectFor(ctx, 0, needs...)
}

// connectFor is connect with a bound on how long the server may take to answer. Without one, a connection whose other end has gone
// without a word, as with a machine that lost its power, is waited for until the system gives it up, which takes minutes.
func (db database) connectFor(ctx context.Context, patience time.Duration, needs ...setting) (*conn, error) {
	given, err := stdlib.GetConnector(*db.config).Connect(ctx)
	if err != nil {
		return nil, err
	}
	raw := given.(*stdlib.Conn)
	c := &conn{raw: raw, pg: raw.Conn(), sql: db.sql, ctx: context.Background(), patience: patience}
	takeEncoded(c.pg.TypeMap())
	// One timer for the connection, which is set for each call: it costs nothing beside a round trip. The hour is never
	// over.
	c.watchdog = time.AfterFunc(time.Hour, func() { _ = c.cut() })
	c.watchdog.Stop()
	c.working = func() bool { return db.isWorking(c.pid) }
	if err := c.setUp(ctx, db, needs); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error { return c.raw.Close() }

// cut ends the connection as the death of this process would.
//
// Without a word to the server, which close would wait for to be sent. The server rolls back when it finds the connection
// closed.
func (c *conn) cut() error { return c.pg.PgConn().Conn().Close() }

// gone reports whether the connection was lost.
func (c *conn) gone() bool { return c.pg.IsClosed() }

// within runs f, which has the server do something, and cuts the connection if the server does not answer.
func (c *conn) within(f func() error) error {
	if c.patience == 0 {
		return f()
	}
	c.watchdog.Reset(c.patience)
	err := f()
	// A timer that fired in the same instant in which the answer came is no error of this call; the connection is gone for
	// the next one.
	if !c.watchdog.Stop() && err != nil {
		err = fmt.Errorf("the server has not answered for %s: %w", c.patience, err)
	}
	return err
}

// supervise runs f, which has the server do something that may take any time, and cuts the connection when the server is found not
// to be busy with it.
func (c *conn) supervise(f func() error) error {
	if c.patience == 0 {
		return f()
	}
	over := make(chan struct{})
	defer close(over)
	defer time.AfterFunc(c.patience, func() { c.look(over) }).Stop()
	return f()
}

// An engine that waits for SQL of the user's cannot tell by silence whether the server works. A process of the server that
// is not active, or a server that cannot be asked, means that no answer comes any more.
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

// isWorking reports whether a process of the server runs a statement; false if the server cannot be asked.
func (db database) isWorking(pid uint32) bool {
	ctx, cancel := context.WithTimeout(context.Background(), db.set.attention)
	defer cancel()
	c, err := db.connectFor(ctx, db.set.attention)
	if err != nil {
		return false
	}
	// A connection of its own: that of the fleet may wait for the answer of a server that is gone, too.
	_, working, err := c.number("SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'", int32(pid))
	return errors.Join(err, c.close()) == nil && working
}

// patiently lets the server take its time until the function that is returned is called.
func (c *conn) patiently() (end func()) {
	before := c.patience
	c.patience = 0
	return func() { c.patience = before }
}

// exec runs statements that are not worth preparing.
func (c *conn) exec(ctx context.Context, query string) error {
	_, err := c.simple(ctx, query)
	return err
}

// last is what the last one of statements does that are not worth preparing.
func (c *conn) last(ctx context.Context, query string) (*pgconn.Result, error) {
	results, err := c.simple(ctx, query)
	if err != nil {
		return nil, err
	}
	return results[len(results)-1], nil
}

// By the simple protocol, which takes several statements in one round trip and prepares none. BEGIN, SAVEPOINT and SET go
// that way.
func (c *conn) simple(ctx context.Context, query string) (results []*pgconn.Result, err error) {
	c.catchUp()
	err = c.within(func() error {
		results, err = c.pg.PgConn().Exec(ctx, c.sql.text(query)).ReadAll()
		return err
	})
	return results, err
}

// prompt has the server end a session that is idle within a transaction for long.
const prompt = "SET LOCAL idle_in_transaction_session_timeout = '5s'"

// transaction runs f, which is none of the user's SQL, between BEGIN and COMMIT. If this process is stopped on the way, or the connection is cut
// without a word, the server soon ends the session, and with it the locks that other engines, or the next connection of this one, wait for.
// The statements that it begins with set what f needs, until its end.
func (c *conn) transaction(ctx context.Context, f func() error, set ...string) error {
	if _, err := c.begin(ctx, "BEGIN", append([]string{prompt}, set...)...); err != nil {
		return err
	}
	if err := f(); err != nil {
		return errors.Join(err, c.exec(ctx, "ROLLBACK"))
	}
	return c.exec(ctx, "COMMIT")
}

// each calls f with every row of a query. The rows are read before, so that f may run other statements.
//
// A connection of PostgreSQL sends the rows of one query at a time, so a query within another one would have to wait for its
// end. All rows are read before; limits bound them.
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

// number returns the first column of the only row; found is false if there is no row, or a NULL in it.
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

// Fingerprint implements [tables.Source].
func (c *conn) Fingerprint(id workitem.CaseID) (fingerprint string, err error) {
	err = c.each("SELECT fingerprint FROM @.cases WHERE id = $1", []any{uuid(id)}, func(r *tables.Row) error {
		fingerprint = r.Text()
		return r.Err
	})
	return fingerprint, err
}

// uuid is an id as the driver takes it.
func uuid[K ~[16]byte](id K) [16]byte { return id }
