package postgres

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5/stdlib"
)

// userConn is the connection as database/sql uses it for the user's SQL. A connection of PostgreSQL runs one statement
// at a time, but callers may run others while they read rows. So all rows of a query are read before the first is
// returned.
type userConn struct{ *stdlib.Conn }

// ExecContext implements driver.ExecerContext. Without arguments there may be several statements, as on SQLite; with
// arguments, the extended protocol takes only one. If this process dies, the server rolls back the statement with its
// transaction.
func (c userConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 {
		return c.Conn.ExecContext(ctx, query, args)
	}
	results, err := c.Conn.Conn().PgConn().Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return driver.RowsAffected(0), nil
	}
	return driver.RowsAffected(results[len(results)-1].CommandTag.RowsAffected()), nil
}

// QueryContext implements driver.QueryerContext.
func (c userConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return readAll(c.Conn.QueryContext(ctx, query, args))
}

// PrepareContext implements driver.ConnPrepareContext.
func (c userConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return userStmt{s.(*stdlib.Stmt)}, nil
}

type userStmt struct{ *stdlib.Stmt }

// QueryContext implements driver.StmtQueryContext.
func (s userStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return readAll(s.Stmt.QueryContext(ctx, args))
}

// readRows are rows that have been read into memory.
type readRows struct {
	columns []string
	rows    [][]driver.Value
}

// The bytes are copied, since the driver reuses its buffer for the next row.
func readAll(given driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	r := &readRows{columns: given.Columns()}
	for err == nil {
		row := make([]driver.Value, len(r.columns))
		if err = given.Next(row); err != nil {
			break
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = bytes.Clone(b)
			}
		}
		r.rows = append(r.rows, row)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, given.Close()); err != nil {
		return nil, err
	}
	return r, nil
}

// Columns implements driver.Rows.
func (r *readRows) Columns() []string { return r.columns }

// Close implements driver.Rows.
func (r *readRows) Close() error {
	r.rows = nil
	return nil
}

// Next implements driver.Rows.
func (r *readRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}
