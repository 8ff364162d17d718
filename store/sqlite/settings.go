package sqlite

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
	// Kept until the commit, as entries are: a savepoint that is rolled back cuts the list.
	tx.settings = append(tx.settings, store.Setting{Name: name, Value: value})
	return nil
}

// Setting implements [store.Tx].
func (tx *transaction) Setting(_ context.Context, name string) (value json.RawMessage, err error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	// The last value that this transaction has set counts; nil is one that it has removed.
	for _, s := range slices.Backward(tx.settings) {
		if s.Name == name {
			return s.Value, nil
		}
	}
	err = tx.s.w.each("SELECT value FROM settings WHERE name = ?", args(name), func(row *tables.Row) error {
		value = row.JSON()
		return row.Err
	})
	return value, tx.met(err)
}

// writeSettings writes settings with the entries, at the commit, so that a command that pauses a queue is rolled back
// with its setting. In order, since the last value of a name counts.
func (tx *transaction) writeSettings() error {
	for _, s := range tx.settings {
		var err error
		if s.Value == nil {
			err = tx.s.w.run("DELETE FROM settings WHERE name = ?", s.Name)
		} else {
			err = tx.s.w.run("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
				s.Name, string(s.Value))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Settings implements [store.Reader].
func (r *reader) Settings(context.Context) (all []store.Setting, err error) {
	err = r.c.each("SELECT name, value FROM settings ORDER BY name", nil, func(row *tables.Row) error {
		all = append(all, store.Setting{Name: row.Text(), Value: row.JSON()})
		return row.Err
	})
	return all, err
}
