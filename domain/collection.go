package domain

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Collection is a named set of records with keys of type K and values of type V. Declare it once, as a variable:
//
//	var orders = domain.Collection[string, Order]{Name: "orders"}
//
// A K is one of
//
//   - a string type, kept as it is: text of 1 to 1024 bytes;
//   - an integer type, kept in 20 digits that sort as the numbers do: -1 as 09223372036854775807 and 42 as
//     10000000000000000042, or 00000000000000000042 if the type is unsigned;
//   - a type with MarshalText and UnmarshalText, such as a uuid.UUID, kept as that text.
//
// A V is anything that JSON can hold. Values are validated before they are written, see [Encode], and may have
// [MaxSize] bytes of JSON.
//
// The name, not the Go type, is what is stored: letters, digits, '_', '-' and '.', beginning with a letter or '_', at
// most 64 in all. The zero Collection has no name, and all its methods fail. Every error names the collection and the
// key; the errors of the database are wrapped.
type Collection[K comparable, V any] struct {
	Name string
}

// The parameters of a statement are numbered in the order in which they first appear: PostgreSQL goes by the number,
// SQLite by the order.
//
// Each is completed by the function statement, which replaces @ by the name of the table.
const (
	putSQL = `INSERT INTO @ (collection, key, value) VALUES ($1, $2, $3)
		ON CONFLICT (collection, key) DO UPDATE SET value = excluded.value`
	getSQL    = `SELECT value FROM @ WHERE collection = $1 AND key = $2`
	swapSQL   = `UPDATE @ SET value = $1 WHERE collection = $2 AND key = $3 AND value = $4`
	deleteSQL = `DELETE FROM @ WHERE collection = $1 AND key = $2`
	hasSQL    = `SELECT count(*) FROM @ WHERE collection = $1 AND key = $2`
	countSQL  = `SELECT count(*) FROM @ WHERE collection = $1`
)

// statement returns a statement for the table of all collections.
func statement(db DB, sql string) string { return strings.Replace(sql, "@", Table(db, "records"), 1) }

// Put inserts a record, or replaces the one with the same key. The error is an *InvalidError if the value is invalid,
// or ErrTooLarge; nothing is written then.
func (c Collection[K, V]) Put(ctx context.Context, db DB, key K, value V) error {
	k, err := c.key(key)
	if err != nil {
		return c.failed("put", key, err)
	}
	data, err := Encode(value)
	if err != nil {
		return c.failed("put", key, err)
	}
	_, err = db.ExecContext(ctx, statement(db, putSQL), c.Name, k, string(data))
	return c.failed("put", key, err)
}

// Get reads a record. The error is [ErrNotFound] if there is none.
func (c Collection[K, V]) Get(ctx context.Context, db DB, key K) (V, error) {
	var none V
	k, err := c.key(key)
	if err != nil {
		return none, c.failed("get", key, err)
	}
	_, value, err := c.read(ctx, db, k)
	return value, c.failed("get", key, err)
}

// Has reports whether there is a record with the key.
func (c Collection[K, V]) Has(ctx context.Context, db DB, key K) (bool, error) {
	k, err := c.key(key)
	if err != nil {
		return false, c.failed("look for", key, err)
	}
	n := 0
	err = db.QueryRowContext(ctx, statement(db, hasSQL), c.Name, k).Scan(&n)
	return n > 0, c.failed("look for", key, err)
}

// Delete removes a record. That there is none is no error.
func (c Collection[K, V]) Delete(ctx context.Context, db DB, key K) error {
	k, err := c.key(key)
	if err != nil {
		return c.failed("delete", key, err)
	}
	_, err = db.ExecContext(ctx, statement(db, deleteSQL), c.Name, k)
	return c.failed("delete", key, err)
}

// Count returns the number of records in the collection.
func (c Collection[K, V]) Count(ctx context.Context, db DB) (int, error) {
	err := c.check()
	n := 0
	if err == nil {
		err = db.QueryRowContext(ctx, statement(db, countSQL), c.Name).Scan(&n)
	}
	if err != nil {
		return 0, fmt.Errorf("count %.64s: %w", c.Name, err)
	}
	return n, nil
}

// Update calls f with the current value of a record and writes back the value that f has changed. If f returns an
// error, nothing is written, and Update returns that error, wrapped. The error is ErrNotFound if there is no such
// record.
//
// Concurrent updates are not lost, within a transaction or without one: if the record has changed since it was read,
// Update reads it and calls f again. So f should do nothing but change the value. Fields of the stored record that V
// does not have are dropped by an update.
func (c Collection[K, V]) Update(ctx context.Context, db DB, key K, f func(*V) error) error {
	k, err := c.key(key)
	for done := false; err == nil && !done; {
		if done, err = c.swap(ctx, db, k, f); !done && err == nil {
			err = ctx.Err()
		}
	}
	return c.failed("update", key, err)
}

// swap writes the changed value if the old one is still there, and reports whether it was.
func (c Collection[K, V]) swap(ctx context.Context, db DB, k string, f func(*V) error) (bool, error) {
	old, value, err := c.read(ctx, db, k)
	if err != nil {
		return false, err
	}
	if err := f(&value); err != nil {
		return false, err
	}
	data, err := Encode(value)
	if err != nil || string(data) == old {
		return true, err
	}
	result, err := db.ExecContext(ctx, statement(db, swapSQL), string(data), c.Name, k, old)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// read returns a record, as it is stored and as a value.
func (c Collection[K, V]) read(ctx context.Context, db DB, k string) (string, V, error) {
	var stored string
	var none V
	err := db.QueryRowContext(ctx, statement(db, getSQL), c.Name, k).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return "", none, err
	}
	value, err := Restore[V]([]byte(stored))
	return stored, value, err
}

func (c Collection[K, V]) key(key K) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	return keyText(key)
}

var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func (c Collection[K, V]) check() error {
	switch {
	case c.Name == "":
		return errors.New("the collection has no name: set Name")
	case len(c.Name) > maxName || !names.MatchString(c.Name):
		return fmt.Errorf("%.80q can't name a collection: use letters, digits, '_', '-' and '.', at most %d in all",
			c.Name, maxName)
	}
	return nil
}

// failed says what was tried with what: put orders "o-7": ... .
func (c Collection[K, V]) failed(op string, key K, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %.64s %.64q: %w", op, cmp.Or(c.Name, "record"), fmt.Sprint(key), err)
}
