package sqlkit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/tasq-dev/tasq/domain"
)

// ErrOver means that the transaction for the user's SQL has ended.
var ErrOver = errors.New("the transaction is over: use it only within the function that it was given to")

// UserDB gives the user's SQL access to the connection of a store's transaction through database/sql: all its
// connections are that one connection. After the end of the transaction, every call fails. It is a [domain.DB].
type UserDB struct {
	*sql.DB
	raw     Conn
	scope   Scope // its lock guards what follows
	dialect domain.Dialect
	schema  string
	over    bool
	running atomic.Bool // a statement
	rows    map[*userRows]bool
	stmts   map[*userStmt]bool
}

// Conn is a connection of the driver.
type Conn interface {
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// Scope is the transaction or view of the user's SQL. The lock is that of the connection, and is held during each call
// of the driver.
type Scope interface {
	sync.Locker

	// Do runs f, which runs a statement, if that is allowed now. It returns the error for the user. The lock is held.
	Do(statement string, f func() error) error

	// Met returns the error of a row for the user. The lock is held.
	Met(err error) error
}

// Interrupter is a [Scope] that can end the statement that runs in it.
type Interrupter interface {
	// Interrupt has the running statement fail soon, and does not wait for that. The lock is not held. If the statement has just ended, the
	// next one of the connection may fail instead, so the store must take that for an error of the transaction.
	Interrupt()
}

// NewUserDB returns a handle that is valid until End. The schema is what the names of Tasq's tables need, "" if they need
// none.
func NewUserDB(raw Conn, scope Scope, dialect domain.Dialect, schema string) *UserDB {
	u := &UserDB{raw: raw, scope: scope, dialect: dialect, schema: schema, rows: make(map[*userRows]bool), stmts: make(map[*userStmt]bool)}
	u.DB = sql.OpenDB(u)
	return u
}

// DeadDB returns a handle of a transaction that has ended.
var DeadDB = sync.OnceValue(func() domain.DB {
	u := &UserDB{scope: noScope{new(sync.Mutex)}, over: true}
	u.DB = sql.OpenDB(u)
	return u
})

type noScope struct{ sync.Locker }

// Do implements [Scope].
func (noScope) Do(string, func() error) error { return ErrOver }

// Met implements [Scope].
func (noScope) Met(err error) error { return err }

// Dialect implements [domain.Speaker].
func (u *UserDB) Dialect() domain.Dialect { return u.dialect }

// Table implements [domain.Namer].
func (u *UserDB) Table(name string) string {
	if u.schema == "" {
		return name
	}
	return u.schema + "." + name
}

// Connect implements driver.Connector.
func (u *UserDB) Connect(context.Context) (driver.Conn, error) {
	u.scope.Lock()
	defer u.scope.Unlock()
	if u.over {
		return nil, ErrOver
	}
	return userConn{u}, nil
}

// Driver implements driver.Connector.
func (u *UserDB) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) { return nil, ErrOver }

// CloseRows ends the queries that the user has not read completely. The lock is held.
func (u *UserDB) CloseRows() {
	for r := range u.rows {
		_ = r.raw.Close() // the same error as that of the query
	}
	clear(u.rows)
}

// End makes the handle unusable. A statement that still runs is that of a function that has timed out: it is interrupted, if the scope can do
// that, since it holds the connection, which all commands need.
func (u *UserDB) End() {
	if i, ok := u.scope.(Interrupter); ok && u.running.Load() {
		i.Interrupt()
	}
	u.scope.Lock()
	if !u.over {
		u.over = true
		u.CloseRows()
		for s := range u.stmts {
			_ = s.raw.Close()
		}
		clear(u.stmts)
	}
	u.scope.Unlock()
	_ = u.DB.Close() // its connections need no closing
}

// do runs f on the connection, if it may be used.
func (u *UserDB) do(statement string, f func() error) error {
	u.scope.Lock()
	defer u.scope.Unlock()
	if u.over {
		return ErrOver
	}
	u.running.Store(true)
	defer u.running.Store(false)
	return u.scope.Do(statement, f)
}

type userConn struct{ u *UserDB }

// Close implements driver.Conn. The connection is the store's.
func (c userConn) Close() error { return nil }

// CheckNamedValue implements driver.NamedValueChecker: the user may pass every value that the driver takes.
func (c userConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.u.raw.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Begin implements driver.Conn.
func (c userConn) Begin() (driver.Tx, error) { return nil, Refusal("BEGIN") }

// Prepare implements driver.Conn.
func (c userConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c userConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	s := &userStmt{u: c.u, query: query}
	err := c.u.do(query, func() error {
		raw, err := c.u.raw.PrepareContext(context.Background(), query)
		if err != nil {
			return err
		}
		s.raw = raw.(stmt)
		c.u.stmts[s] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ExecContext implements driver.ExecerContext. The context is checked only before the start: an interrupt would roll
// back the transaction, which has the work of several commands.
func (c userConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result,
	err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = c.u.do(query, func() (err error) {
		res, err = c.u.raw.ExecContext(context.Background(), query, args)
		return err
	})
	return res, err
}

// QueryContext implements driver.QueryerContext.
func (c userConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.u.query(query, func() (driver.Rows, error) { return c.u.raw.QueryContext(context.Background(), query, args) })
}

func (u *UserDB) query(statement string, f func() (driver.Rows, error)) (driver.Rows, error) {
	r := &userRows{u: u}
	err := u.do(statement, func() (err error) {
		if r.raw, err = f(); err == nil {
			u.rows[r] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

type userStmt struct {
	u     *UserDB
	query string
	raw   stmt
}

type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// Close implements driver.Stmt.
func (s *userStmt) Close() error {
	s.u.scope.Lock()
	defer s.u.scope.Unlock()
	if !s.u.stmts[s] {
		return nil
	}
	delete(s.u.stmts, s)
	return s.raw.Close()
}

// NumInput implements driver.Stmt.
func (s *userStmt) NumInput() int { return -1 }

// Exec implements driver.Stmt.
func (s *userStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errOldDriver }

// Query implements driver.Stmt.
func (s *userStmt) Query([]driver.Value) (driver.Rows, error) { return nil, errOldDriver }

var errOldDriver = errors.New("a call without a context")

// ExecContext implements driver.StmtExecContext.
func (s *userStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.u.do(s.query, func() (err error) {
		res, err = s.raw.ExecContext(context.Background(), args)
		return err
	})
	return res, err
}

// QueryContext implements driver.StmtQueryContext.
func (s *userStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.u.query(s.query, func() (driver.Rows, error) { return s.raw.QueryContext(context.Background(), args) })
}

type userRows struct {
	u   *UserDB
	raw driver.Rows
}

// Columns implements driver.Rows.
func (r *userRows) Columns() []string { return r.raw.Columns() }

// Close implements driver.Rows.
func (r *userRows) Close() error {
	r.u.scope.Lock()
	defer r.u.scope.Unlock()
	if !r.u.rows[r] {
		return nil
	}
	delete(r.u.rows, r)
	return r.raw.Close()
}

// Next implements driver.Rows.
func (r *userRows) Next(dest []driver.Value) error {
	r.u.scope.Lock()
	defer r.u.scope.Unlock()
	if !r.u.rows[r] {
		return fmt.Errorf("read the rows before the end of the command that asked for them: %w", ErrOver)
	}
	r.u.running.Store(true)
	err := r.raw.Next(dest)
	r.u.running.Store(false)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return r.u.scope.Met(err)
}

// Refusal returns the error of a statement that would end the transaction of a command.
func Refusal(word string) error {
	return fmt.Errorf("%s is not allowed: the statement runs in the transaction of a command, which commits or "+
		"undoes it; return an error to undo", word)
}
