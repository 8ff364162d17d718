package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// conn is a connection to SQLite with its prepared statements. The store's own statements use the driver directly,
// since database/sql costs a third more; the user's SQL uses database/sql, see sqlkit.UserDB. A conn is used by one
// goroutine at a time, except that a callback that has timed out may still be running SQL.
type conn struct {
	mu    sync.Mutex // held for each call of the driver
	raw   rawConn
	ctx   context.Context // may interrupt a query; not used for writers, whose transaction would be rolled back
	stmts map[string]*stmt
	open  int // number of nested queries in progress, whose statements are in use

	guard     *guard // of the user's SQL
	unprotect func() // ends the guard, after the connection

	overlaid bool // a reader's transaction has newer rows than the tables; see makeOverlay

	frozen *stamp      // of a reader that trusts the file not to change; see freeze
	file   os.FileInfo // of a reader without an owner's checks: the file that had the name when it was opened; see currentReader
}

// rawConn is what the package uses of the driver's connection. All calls can take a context; see conn.ctx for those
// that do.
type rawConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// maxStmts limits the prepared statements of a connection, except for those that nested queries add: filters have many
// forms, each with its own text.
const maxStmts = 200

// The pragmas are run in their order, before any other statement: some have no effect later, such as page_size.
func connect(ctx context.Context, dsn string, pragmas ...string) (*conn, error) {
	connector, err := sqlite3.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	given, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return adopt(given, pragmas...)
}

// adopt wraps a connection of the driver. It closes it on an error.
func adopt(given driver.Conn, pragmas ...string) (*conn, error) {
	raw, ok := given.(rawConn)
	if !ok {
		return nil, errors.Join(errors.New("this version of modernc.org/sqlite lacks context support"), given.Close())
	}
	c := &conn{raw: raw, ctx: context.Background(), stmts: make(map[string]*stmt), guard: new(guard)}
	var err error
	if c.unprotect, err = c.guard.protect(raw); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	for _, p := range pragmas {
		if err := c.exec("PRAGMA " + p); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// The guard ends after the connection, so that no statement runs without it.
func (c *conn) close() error {
	c.forget()
	defer c.unprotect()
	return c.raw.Close()
}

// forget drops the prepared statements.
// It may be called at any time at which no query is open: a statement that is needed again is prepared again.
func (c *conn) forget() {
	for _, s := range c.stmts {
		_ = s.raw.Close() // the same error as that of the last run
	}
	clear(c.stmts)
}

// exec runs statements without preparing them.
// For statements that are run once or seldom, and for several in one text, which cannot be prepared together.
func (c *conn) exec(query string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.execLocked(query)
}

// Statements of transactions and pragmas do not use the context of a caller; see Update.
func (c *conn) execLocked(query string) error {
	_, err := c.raw.ExecContext(context.Background(), query, nil)
	return err
}

// stmt is a prepared statement.
// The values to bind are kept with it, so that a call does not allocate a list for them.
type stmt struct {
	raw  rawStmt
	args []driver.NamedValue
}

type rawStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// prepare returns the prepared statement of a text. It requires the lock.
func (c *conn) prepare(query string) (*stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	given, err := c.raw.PrepareContext(context.Background(), query)
	if code(err) == sqlitelib.SQLITE_ERROR { // the statement is Tasq's own, so the tables are not
		return nil, fmt.Errorf("%w: its schema is not the one that Tasq made: %w", store.ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", query, err)
	}
	// It closes all statements, not only the oldest: counting uses would slow down every statement, and the needed ones
	// are soon prepared again. Statements of queries in progress must stay, and it is unknown which ones they are.
	if len(c.stmts) >= maxStmts && c.open == 0 {
		c.forget()
	}
	s := &stmt{raw: given.(rawStmt)}
	c.stmts[query] = s
	return s, nil
}

// The memory of the last call is used again, which is safe since a statement is not used twice at a time: see each.
func (s *stmt) bind(args []driver.Value) []driver.NamedValue {
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s.args
}

// run executes a prepared statement that returns no rows.
func (c *conn) run(query string, args ...driver.Value) error {
	_, err := c.change(query, args...)
	return err
}

// change is like run and returns how many rows it changed.
func (c *conn) change(query string, args ...driver.Value) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changeLocked(query, args...)
}

// The driver reports the rows that the statement itself has changed, without those of triggers.
func (c *conn) changeLocked(query string, args ...driver.Value) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := s.raw.ExecContext(context.Background(), s.bind(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// listOf returns what read makes of the rows of a query.
func listOf[T any](c *conn, query string, args []driver.Value, read func(*tables.Row) (T, error)) (all []T, err error) {
	err = c.each(query, args, func(r *tables.Row) error {
		v, err := read(r)
		all = append(all, v)
		return err
	})
	return all, err
}

// each calls f with every row of a query. f must not run the same query.
// A prepared statement has one cursor, and statements are found by their texts: a second query with the same text
// would need the cursor that the first is using. Queries with other texts may be nested, and c.open keeps their
// statements.
func (c *conn) each(query string, args []driver.Value, f func(*tables.Row) error) (err error) {
	rows, err := c.query(query, args)
	if err != nil {
		return err
	}
	// Close resets the statement. Until then it is active for SQLite, also if f returned an error before the last
	// row.
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
		err = errors.Join(err, rows.Close())
	}()
	r := tables.Row{Values: make([]driver.Value, len(rows.Columns()))}
	for {
		// The lock is taken for each row and not for the whole query, since f may run other queries, which take it too.
		c.mu.Lock()
		err := rows.Next(r.Values)
		c.mu.Unlock()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		r.Begin()
		if err := f(&r); err != nil {
			return err
		}
	}
}

func (c *conn) query(query string, args []driver.Value) (driver.Rows, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	rows, err := s.raw.QueryContext(c.ctx, s.bind(args))
	if err == nil {
		c.open++
	}
	return rows, err
}

// inTransactionLocked reports whether the connection is in a transaction, by trying to begin one.
// Within a transaction BEGIN is an error that changes nothing. If it succeeds there was none, and the new one is
// ended; should even that fail, the connection is in a transaction.
func (c *conn) inTransactionLocked() bool {
	if c.execLocked("BEGIN") != nil {
		return true
	}
	return c.execLocked("ROLLBACK") != nil
}

// number returns the first column of the only row; found is false if there is no row, or if it is NULL.
func (c *conn) number(query string, args ...driver.Value) (n int64, found bool, err error) {
	err = c.each(query, args, func(r *tables.Row) error {
		// NULL is nil, which is no int64.
		n, found = r.Values[0].(int64)
		return nil
	})
	return n, found, err
}

// Values are bound as follows.

// textOf returns an id as it is bound. Ids are texts of 36 bytes and not blobs of 16, so that they can be read and
// typed in sqlite3. The order is the same.
// A zero id is NULL: a root case has no parent, and a job of a case has no item. The partial indexes on child cases
// leave out rows with NULL.
func textOf[T any](k workitem.Key[T]) driver.Value {
	if k.IsZero() {
		return nil
	}
	var buf [36]byte
	b, _ := k.AppendText(buf[:0]) // it never fails
	return string(b)
}

// nullable returns NULL for an empty text.
// Columns that are looked up by a value, such as the business key, have NULL for none, and no entry in a partial
// index.
func nullable(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// As text and not as a blob, so that the JSON functions of SQLite, and people with sqlite3, can read it.
func jsonOf(data json.RawMessage) driver.Value {
	if len(data) == 0 {
		return nil
	}
	return string(data)
}

// The encoding is that of the journal, with the code before the message: indexes and filters read the code by its
// path.
func failureOf(f *workitem.Failure) driver.Value {
	if f == nil {
		return nil
	}
	return string(state.AppendFailure(nil, f))
}

// Times are numbers of microseconds, which compare and subtract as they are. NULL is a time that has not come.
func timeOf(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return state.Micros(t)
}

// SQLite has no type for it; 0 and 1 are its usual form.
func boolOf(b bool) driver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}
