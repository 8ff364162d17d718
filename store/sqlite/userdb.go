package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tasq-dev/tasq/domain"
)

// userDB gives the user's SQL the connection of the store's transaction, by way of package database/sql: its
// connections are all the same one of SQLite. When the transaction is over, nothing of it works any more.
type userDB struct {
	*sql.DB
	c     *conn // its lock guards what follows
	scope scope
	over  bool
	rows  map[*userRows]bool
	stmts map[*userStmt]bool
}

// scope is the transaction or view that the user's SQL runs in. Both functions are called with the connection's lock
// held.
type scope interface {
	before() error     // whether a statement may run now
	after(error) error // the error of a statement, as the user gets it
}

func newUserDB(c *conn, o scope) *userDB {
	u := &userDB{c: c, scope: o, rows: make(map[*userRows]bool), stmts: make(map[*userStmt]bool)}
	u.DB = sql.OpenDB(u)
	return u
}

// deadDB is what DB returns after the end.
var deadDB = sync.OnceValue(func() domain.DB {
	u := &userDB{c: &conn{}, over: true}
	u.DB = sql.OpenDB(u)
	return u
})

// Connect implements driver.Connector.
func (u *userDB) Connect(context.Context) (driver.Conn, error) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	if u.over {
		return nil, errOver
	}
	return userConn{u}, nil
}

// Driver implements driver.Connector.
func (u *userDB) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) { return nil, errOver }

// closeRowsLocked ends the queries that the user has not read to their end.
func (u *userDB) closeRowsLocked() {
	for r := range u.rows {
		_ = r.raw.Close() // an error repeats that of the query
	}
	clear(u.rows)
}

// end makes every handle unusable.
func (u *userDB) end() {
	u.c.mu.Lock()
	if !u.over {
		u.over = true
		u.closeRowsLocked()
		for s := range u.stmts {
			_ = s.raw.Close()
		}
		clear(u.stmts)
	}
	u.c.mu.Unlock()
	_ = u.DB.Close() // its connections have nothing to close
}

// do runs f on the connection, if that may be used.
func (u *userDB) do(f func() error) error {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	if u.over {
		return errOver
	}
	if err := u.scope.before(); err != nil {
		return err
	}
	return u.scope.after(u.c.guard.run(f))
}

type userConn struct{ u *userDB }

// Close implements driver.Conn. The connection is the store's.
func (c userConn) Close() error { return nil }

// Begin implements driver.Conn.
func (c userConn) Begin() (driver.Tx, error) { return nil, refuse("BEGIN") }

// Prepare implements driver.Conn.
func (c userConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c userConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	s := &userStmt{u: c.u}
	err := c.u.do(func() error {
		raw, err := c.u.c.raw.PrepareContext(context.Background(), query)
		if err != nil {
			return err
		}
		s.raw = raw.(rawStmt)
		c.u.stmts[s] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ExecContext implements driver.ExecerContext. The context is looked at before and not after the start: an interrupt
// would undo the transaction of everybody.
func (c userConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result,
	err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = c.u.do(func() (err error) {
		res, err = c.u.c.raw.ExecContext(context.Background(), query, args)
		return err
	})
	return res, err
}

// QueryContext implements driver.QueryerContext.
func (c userConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.u.query(func() (driver.Rows, error) { return c.u.c.raw.QueryContext(context.Background(), query, args) })
}

func (u *userDB) query(f func() (driver.Rows, error)) (driver.Rows, error) {
	r := &userRows{u: u}
	err := u.do(func() (err error) {
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
	u   *userDB
	raw rawStmt
}

// Close implements driver.Stmt.
func (s *userStmt) Close() error {
	s.u.c.mu.Lock()
	defer s.u.c.mu.Unlock()
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
	err = s.u.do(func() (err error) {
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
	return s.u.query(func() (driver.Rows, error) { return s.raw.QueryContext(context.Background(), args) })
}

type userRows struct {
	u   *userDB
	raw driver.Rows
}

// Columns implements driver.Rows.
func (r *userRows) Columns() []string { return r.raw.Columns() }

// Close implements driver.Rows.
func (r *userRows) Close() error {
	r.u.c.mu.Lock()
	defer r.u.c.mu.Unlock()
	if !r.u.rows[r] {
		return nil
	}
	delete(r.u.rows, r)
	return r.raw.Close()
}

// Next implements driver.Rows.
func (r *userRows) Next(dest []driver.Value) error {
	r.u.c.mu.Lock()
	defer r.u.c.mu.Unlock()
	if !r.u.rows[r] {
		return fmt.Errorf("read the rows before the end of the command that asked for them: %w", errOver)
	}
	err := r.raw.Next(dest)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return r.u.scope.after(err)
}
