package domain

import (
	"context"
	"database/sql"
	"errors"
)

// DB runs SQL. A *sql.DB, a *sql.Tx and a *sql.Conn are DBs, and so is whatever a callback of a process is given: then
// the SQL belongs to the process's transaction. It has the methods of the DBTX interface that sqlc generates, so
// generated code accepts it. It can read the store's own tables, which only the engine may change.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Schema creates the table of all collections, if it does not exist. The stores of Tasq run it when they open a
// database; in any other database, run it once. The same statement works on SQLite and on PostgreSQL, where
// [PostgresKeyOrder] should follow it.
//
// Programs may query the table: value is JSON text, key is encoded as described at Collection.
const Schema = `CREATE TABLE IF NOT EXISTS records (
	collection TEXT NOT NULL,
	key        TEXT NOT NULL,
	value      TEXT NOT NULL,
	PRIMARY KEY (collection, key)
)`

// PostgresKeyOrder makes a PostgreSQL database compare keys by their bytes, as SQLite does. With the collation of a
// language, "a-b" sorts after "ab", and lists by prefix miss records.
const PostgresKeyOrder = `ALTER TABLE records ALTER COLUMN key TYPE TEXT COLLATE "C"`

// ErrNotFound says that a collection has no record with the key.
var ErrNotFound = errors.New("not found")
