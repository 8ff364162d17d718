package domain

import (
	"context"
	"database/sql"
	"errors"
)

// DB runs SQL. A *sql.DB, a *sql.Tx and a *sql.Conn are DBs, and so is whatever a callback of a process is given: then
// the SQL belongs to the process's transaction. It has the methods of the DBTX interface that sqlc generates, so
// generated code accepts it. Tables of the store's own can be read by such a DB, and are changed by the engine's
// methods only.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Schema creates the table of all collections, if it isn't there. A store of Tasq runs it when it opens a database;
// with a database of your own, run it once. The same text serves SQLite and PostgreSQL, where [PostgresKeyOrder]
// should follow it.
//
// You may query the table: value is JSON text, key is what [Collection] says.
const Schema = `CREATE TABLE IF NOT EXISTS records (
	collection TEXT NOT NULL,
	key        TEXT NOT NULL,
	value      TEXT NOT NULL,
	PRIMARY KEY (collection, key)
)`

// PostgresKeyOrder makes a PostgreSQL database compare keys by their bytes, as SQLite does. Without it keys are
// compared by the rules of the database's language, which sort "a-b" behind "ab", and lists by prefix miss records.
const PostgresKeyOrder = `ALTER TABLE records ALTER COLUMN key TYPE TEXT COLLATE "C"`

// ErrNotFound says that a collection has no record with the key.
var ErrNotFound = errors.New("not found")
