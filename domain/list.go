package domain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// Entry is one record of a collection.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
}

// Query selects records of a collection. The zero value selects all.
type Query[K comparable] struct {
	// Prefix selects the keys that begin with this text. It does not apply to integer keys. Default: all
	// keys.
	Prefix string

	// After selects the keys after this one, which need not exist: the last key of the previous page. Default: all
	// keys.
	After *K

	// Limit is the largest number of records. Default: 0, which is no limit.
	Limit int
}

// pageSize is how many records are read at a time.
const pageSize = 64

// All yields every record in the order of the keys, like [Collection.List] with the zero Query.
func (c Collection[K, V]) All(ctx context.Context, db DB) iter.Seq2[Entry[K, V], error] {
	return c.List(ctx, db, Query[K]{})
}

// List yields the selected records in the order of their keys: numeric for integers, bytewise for text. An error is
// yielded with a zero Entry, and ends the sequence.
//
// Records are read in pages, and no query is open while the body of the loop runs, so the body may use the same DB,
// and change and delete records. In a transaction the loop sees one snapshot, plus the changes of the body; without
// a transaction it sees each record as of the time its page is read.
func (c Collection[K, V]) List(ctx context.Context, db DB, q Query[K]) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		cur, err := c.cursor(q)
		for more := true; more && err == nil; {
			var page []row
			page, more, err = cur.next(ctx, db)
			for _, r := range page {
				e, bad := entry[K, V](r)
				if bad != nil {
					yield(Entry[K, V]{}, fmt.Errorf("list %.64s: %w", c.Name, bad))
					return
				}
				if !yield(e, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Entry[K, V]{}, fmt.Errorf("list %.64s: %w", c.Name, err))
		}
	}
}

type row struct{ key, value string }

func entry[K comparable, V any](r row) (e Entry[K, V], err error) {
	if e.Key, err = keyOf[K](r.key); err != nil {
		return e, err
	}
	if e.Value, err = Restore[V]([]byte(r.value)); err != nil {
		return e, fmt.Errorf("key %.64q: %w", r.key, err)
	}
	return e, nil
}

// cursor is a place in a collection: the next record is the first whose key is (op) from, and below to.
type cursor struct {
	collection string
	op, from   string // ">=" or ">"
	to         string // "" for no end
	left       int    // how many may still be read; negative for no limit
}

func (c Collection[K, V]) cursor(q Query[K]) (*cursor, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var k K
	if q.Prefix != "" {
		if !hasTextKeys[K]() {
			return nil, fmt.Errorf("keys of type %T have no prefix: use After and Limit", k)
		}
		if err := checkKey(q.Prefix); err != nil {
			return nil, fmt.Errorf("prefix: %w", err)
		}
	}
	if q.Limit < 0 {
		return nil, errors.New("the limit is negative: use 0 for no limit, got " + strconv.Itoa(q.Limit))
	}
	cur := &cursor{collection: c.Name, op: ">=", from: q.Prefix, to: after(q.Prefix), left: cmp.Or(q.Limit, -1)}
	if q.After == nil {
		return cur, nil
	}
	last, err := keyText(*q.After)
	if err != nil {
		return nil, fmt.Errorf("after: %w", err)
	}
	if last >= cur.from {
		cur.op, cur.from = ">", last
	}
	return cur, nil
}

// next reads some records and moves behind them. It reports whether there may be more.
func (cur *cursor) next(ctx context.Context, db DB) (page []row, more bool, err error) {
	size := pageSize
	if cur.left >= 0 {
		size = min(size, cur.left)
	}
	if size == 0 {
		return nil, false, nil
	}
	query := `SELECT key, value FROM @ WHERE collection = $1 AND key ` + cur.op + ` $2`
	args := []any{cur.collection, cur.from}
	if cur.to != "" {
		query, args = query+` AND key < $3`, append(args, cur.to)
	}
	rows, err := db.QueryContext(ctx, statement(db, query)+` ORDER BY key LIMIT `+strconv.Itoa(size), args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.value); err != nil {
			return page, false, err
		}
		page = append(page, r)
	}
	if n := len(page); n > 0 {
		cur.op, cur.from = ">", page[n-1].key
		cur.left -= min(n, max(cur.left, 0))
	}
	return page, len(page) == size, rows.Err()
}
