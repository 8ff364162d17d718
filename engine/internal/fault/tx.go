package fault

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Tx returns the transaction of a store with its unexpected errors marked as faults.
func Tx(tx store.Tx) store.Tx { return marked{tx} }

type marked struct{ store.Tx }

// Load implements store.Tx.
func (m marked) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	t, err := m.Tx.Load(ctx, root)
	return t, As(err)
}

// Root implements store.Tx.
func (m marked) Root(ctx context.Context, id [16]byte) (workitem.CaseID, error) {
	root, err := m.Tx.Root(ctx, id)
	return root, As(err)
}

// Item implements store.Tx.
func (m marked) Item(ctx context.Context, id workitem.ID) (*store.ItemRow, error) {
	row, err := m.Tx.Item(ctx, id)
	return row, As(err)
}

// Steps implements store.Tx.
func (m marked) Steps(ctx context.Context, owner [16]byte) ([]*workitem.Step, error) {
	steps, err := m.Tx.Steps(ctx, owner)
	return steps, As(err)
}

// Append implements store.Tx.
func (m marked) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	return As(m.Tx.Append(ctx, e, t))
}

// Answered implements store.Tx.
func (m marked) Answered(ctx context.Context, key string) (*store.Entry, error) {
	e, err := m.Tx.Answered(ctx, key)
	return e, As(err)
}

// KeyHolders implements store.Tx.
func (m marked) KeyHolders(ctx context.Context, workflow, key string) ([]workitem.CaseID, error) {
	ids, err := m.Tx.KeyHolders(ctx, workflow, key)
	return ids, As(err)
}

// KeyStarts implements store.Tx.
func (m marked) KeyStarts(ctx context.Context, workflow, key string, after time.Time) ([]store.KeyStart, error) {
	all, err := m.Tx.KeyStarts(ctx, workflow, key, after)
	return all, As(err)
}

// Successors implements store.Tx.
func (m marked) Successors(ctx context.Context, id workitem.CaseID) ([]workitem.CaseID, error) {
	all, err := m.Tx.Successors(ctx, id)
	return all, As(err)
}

// Requests implements store.Tx.
func (m marked) Requests(ctx context.Context, after int64, max int) ([]store.Request, error) {
	r, err := m.Tx.Requests(ctx, after, max)
	return r, As(err)
}

// Reply implements store.Tx.
func (m marked) Reply(ctx context.Context, id int64, a store.Answer) error {
	return As(m.Tx.Reply(ctx, id, a))
}

// Setting implements store.Tx.
func (m marked) Setting(ctx context.Context, name string) (json.RawMessage, error) {
	value, err := m.Tx.Setting(ctx, name)
	return value, As(err)
}

// Set implements store.Tx.
func (m marked) Set(ctx context.Context, name string, value json.RawMessage) error {
	return As(m.Tx.Set(ctx, name, value))
}
