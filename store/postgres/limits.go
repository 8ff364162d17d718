package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// Rows of limits are read by one statement and written by another, which skips rows that have changed in between. So no
// engine holds a lock while it decides.

// ReadLimits implements [store.Limits].
//
// The time is the server's, so engines with different clocks agree on what a rate has admitted. It is read before the
// rows. A row that was written in between is newer than the time; its version prevents a decision on an older row from
// overwriting a newer one.
func (s *Store) ReadLimits(ctx context.Context, keys []store.LimitKey) (view store.LimitView, err error) {
	found := make(map[store.LimitKey]store.LimitRow, len(keys))
	names, of := columnsOf(keys)
	err = s.onFleetConn(ctx, func(c *conn, self int64) error {
		view = store.LimitView{Self: self}
		at, _, err := c.number("SELECT " + now)
		if err != nil {
			return err
		}
		view.Now = at * 1000
		if view.Live, err = live(c); err != nil {
			return err
		}
		return c.each("SELECT name, key, state, until, version FROM @.limits JOIN unnest($1::text[], $2::text[]) AS u(name, key) "+
			"USING (name, key)", []any{names, of}, func(r *tables.Row) error {
			row := limitRow(r)
			found[row.LimitKey] = row
			return r.Err
		})
	})
	for _, key := range keys {
		row := found[key]
		row.LimitKey = key
		view.Rows = append(view.Rows, row)
	}
	return view, err
}

// LimitRows implements [store.Reader].
// UNION and not UNION ALL: a row may have a key that is asked for and also the text.
func (r *reader) LimitRows(_ context.Context, f store.LimitFilter) (view store.LimitView, err error) {
	at, _, err := r.c.number("SELECT " + now)
	if err != nil {
		return view, err
	}
	view.Now = at * 1000
	if view.Live, err = live(r.c); err != nil {
		return view, err
	}
	names, of := columnsOf(f.Keys)
	err = r.c.each("SELECT name, key, state, until, version FROM @.limits JOIN unnest($1::text[], $2::text[]) AS u(name, key) USING (name, key) "+
		"UNION SELECT name, key, state, until, version FROM @.limits WHERE $3 <> '' AND until = $4 AND strpos(state, $3) > 0 ORDER BY 1, 2",
		[]any{names, of, f.Text, int64(store.Lasting)}, func(row *tables.Row) error {
			view.Rows = append(view.Rows, limitRow(row))
			return row.Err
		})
	return view, err
}

// live lists the ids of the live engines.
func live(c *conn) (engines []int64, err error) {
	err = c.each("SELECT id FROM @.processes WHERE state = 'live'", nil, func(r *tables.Row) error {
		engines = append(engines, r.Number())
		return r.Err
	})
	return engines, err
}

func limitRow(r *tables.Row) store.LimitRow {
	return store.LimitRow{LimitKey: store.LimitKey{Limit: r.Text(), Key: r.Text()}, State: r.JSON(), Until: r.Number(), Version: r.Number()}
}

// A list of rows is passed as one array for each column, see columns.go.
func columnsOf(keys []store.LimitKey) (names, of []string) {
	for _, key := range keys {
		names, of = append(names, key.Limit), append(of, key.Key)
	}
	return names, of
}

// writeLimits writes the rows that are unchanged since they were read. It locks rows in the order of the keys, so
// engines cannot deadlock.
//
// Each row has a version. If two engines have read version 4, one writes version 5; the other finds no row with version
// 4, does not get the row back as written, reads it again and decides again. Neither holds a lock in between, as a loop
// of retries may take long.
const writeLimits = "WITH u AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[]) " +
	"AS u(name, key, old, state, until)), " +
	"k AS MATERIALIZED (SELECT l.name, l.key FROM @.limits l JOIN u ON l.name = u.name AND l.key = u.key AND l.version = u.old " +
	"ORDER BY l.name, l.key FOR UPDATE OF l), " +
	"w AS (UPDATE @.limits l SET version = u.old + 1, state = u.state, until = u.until FROM k JOIN u USING (name, key) " +
	"WHERE l.name = k.name AND l.key = k.key RETURNING l.name, l.key), " +
	"i AS (INSERT INTO @.limits (name, key, version, state, until) SELECT name, key, $6, state, until FROM u WHERE old = 0 " +
	"ORDER BY name, key ON CONFLICT DO NOTHING RETURNING name, key) " +
	"SELECT name, key FROM w UNION ALL SELECT name, key FROM i"

// WriteLimits implements [store.Limits]. The first version of a row is the time, so a row that was deleted and created
// again is not taken for the old one.
func (s *Store) WriteLimits(ctx context.Context, rows []store.LimitRow, at int64) (written []store.LimitKey, err error) {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b store.LimitRow) int {
		return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Key, b.Key))
	})
	var names, of, states []string
	var old, until []int64
	for _, r := range rows {
		names, of, states = append(names, r.Limit), append(of, r.Key), append(states, string(r.State))
		old, until = append(old, r.Version), append(until, r.Until)
	}
	err = s.onFleetConn(ctx, func(c *conn, _ int64) error {
		if err := c.each(writeLimits, []any{names, of, old, states, until, at}, func(r *tables.Row) error {
			written = append(written, store.LimitKey{Limit: r.Text(), Key: r.Text()})
			return r.Err
		}); err != nil {
			return err
		}
		// SKIP LOCKED, since another engine may be deleting the same rows. The limit of a thousand leaves the rest to
		// the next write.
		_, err := c.run("DELETE FROM @.limits WHERE (name, key) IN (SELECT name, key FROM @.limits WHERE until < $1 "+
			"ORDER BY name, key LIMIT 1000 FOR UPDATE SKIP LOCKED)", at)
		return err
	})
	return written, err
}
