package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// self is the number of the only engine.
const self = 1

// ReadLimits implements [store.Limits].
//
// One process owns the file, so the rows are only kept for the next engine. The port is the same as for a store with a
// fleet: each row has a version, which each write increases.
func (s *Store) ReadLimits(ctx context.Context, keys []store.LimitKey) (store.LimitView, error) {
	view := store.LimitView{Self: self, Live: []int64{self}}
	err := s.outsideUpdate(ctx, func() error {
		for _, key := range keys {
			row := store.LimitRow{LimitKey: key}
			err := s.w.each("SELECT state, until, version FROM limits WHERE name = ? AND key = ?", []driver.Value{key.Limit, key.Key},
				func(r *tables.Row) error {
					row.State, row.Until, row.Version = r.JSON(), r.Number(), r.Number()
					return r.Err
				})
			if err != nil {
				return err
			}
			view.Rows = append(view.Rows, row)
		}
		return nil
	})
	return view, err
}

// LimitRows implements [store.Reader]. There is only one engine, the one that has the file open.
// UNION and not UNION ALL: a row may have a key that is asked for and also the text.
func (r *reader) LimitRows(_ context.Context, f store.LimitFilter) (store.LimitView, error) {
	view := store.LimitView{Live: []int64{self}}
	// Both lists are one parameter, as arrays of equal length that are joined by their positions: a key of a limit
	// may have any character, so no separator is safe.
	names, of := make([]string, len(f.Keys)), make([]string, len(f.Keys))
	for i, key := range f.Keys {
		names[i], of[i] = key.Limit, key.Key
	}
	keys, err := json.Marshal([][]string{names, of})
	if err != nil {
		return view, err
	}
	err = r.c.each("SELECT name, key, state, until, version FROM limits WHERE (name, key) IN (SELECT n.value, k.value "+
		"FROM json_each(?1, '$[0]') n JOIN json_each(?1, '$[1]') k USING (key)) "+
		"UNION SELECT name, key, state, until, version FROM limits WHERE ?2 <> '' AND until = ?3 AND instr(state, ?2) > 0 ORDER BY 1, 2",
		[]driver.Value{string(keys), f.Text, int64(store.Lasting)}, func(row *tables.Row) error {
			view.Rows = append(view.Rows, limitRow(row))
			return row.Err
		})
	return view, err
}

// The columns are in the order in which all queries of limits list them.
func limitRow(r *tables.Row) store.LimitRow {
	return store.LimitRow{LimitKey: store.LimitKey{Limit: r.Text(), Key: r.Text()}, State: r.JSON(), Until: r.Number(), Version: r.Number()}
}

// WriteLimits implements [store.Limits]. No other engine writes, so all rows are written.
func (s *Store) WriteLimits(ctx context.Context, rows []store.LimitRow, now int64) (written []store.LimitKey, err error) {
	// It is an update without entries: the rows of limits are not part of the journal, which would grow with each
	// acquisition.
	err = s.Update(ctx, func(store.Tx) error {
		for _, row := range rows {
			if err := s.w.run("INSERT INTO limits (name, key, state, until, version) VALUES (?, ?, ?, ?, ?) ON CONFLICT (name, key) "+
				"DO UPDATE SET state = excluded.state, until = excluded.until, version = excluded.version",
				row.Limit, row.Key, string(row.State), row.Until, row.Version+1); err != nil {
				return explain(s.path, err)
			}
			written = append(written, row.LimitKey)
		}
		// By the index limits_until. A key that was used once, such as that of one customer, must not leave a row for
		// good.
		return explain(s.path, s.w.run("DELETE FROM limits WHERE until < ?", now))
	})
	if err != nil {
		return nil, err
	}
	return written, nil
}

// outsideUpdate runs f with the writer's connection, outside of an update.
func (s *Store) outsideUpdate(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.present(); err != nil {
		return err
	}
	return explain(s.path, f())
}
