package postgres

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// Set implements [store.Tx].
func (tx *transaction) Set(_ context.Context, name string, value json.RawMessage) error {
	if err := tx.usable(); err != nil {
		return err
	}
	tx.settings = append(tx.settings, store.Setting{Name: name, Value: value})
	return nil
}

// Setting implements [store.Tx]. It takes the lock of business keys, see lockKey.
func (tx *transaction) Setting(_ context.Context, name string) (value json.RawMessage, err error) {
	if err := tx.reachable(); err != nil {
		return nil, err
	}
	// A command changes a part of a setting and writes all of it: without the lock, two engines could each write what
	// they read, and lose the part of the other.
	if err := tx.lockKey("settings/", name); err != nil {
		return nil, err
	}
	for _, s := range slices.Backward(tx.settings) {
		if s.Name == name {
			return s.Value, nil
		}
	}
	err = tx.w.each("SELECT value FROM @.settings WHERE name = $1", []any{name}, func(row *tables.Row) error {
		value = row.JSON()
		return row.Err
	})
	return value, tx.met(err)
}

// queueSettings adds the statements that write settings to a commit.
// They are written in their order, so the last value of a name counts.
func (tx *transaction) queueSettings(b *batch) {
	for _, s := range tx.settings {
		if s.Value == nil {
			b.queue("DELETE FROM @.settings WHERE name = $1", s.Name)
			continue
		}
		b.queue("INSERT INTO @.settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			s.Name, string(s.Value))
	}
}

// Settings implements [store.Reader].
func (r *reader) Settings(context.Context) (all []store.Setting, err error) {
	err = r.c.each("SELECT name, value FROM @.settings ORDER BY name", nil, func(row *tables.Row) error {
		all = append(all, store.Setting{Name: row.Text(), Value: row.JSON()})
		return row.Err
	})
	return all, err
}
