package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// clinging lists every case that ever held a key.
type clinging struct {
	store.Tx
	held map[string][]workitem.CaseID
}

func (tx clinging) KeyHolders(ctx context.Context, workflow, key string) ([]workitem.CaseID, error) {
	found, err := tx.Tx.KeyHolders(ctx, workflow, key)
	name := workflow + " " + key
	for _, id := range found {
		if !slices.Contains(tx.held[name], id) {
			tx.held[name] = append(tx.held[name], id)
		}
	}
	return tx.held[name], err
}

// lateKeys does not see the cases that its own transaction opened.
type lateKeys struct {
	store.Tx
	opened map[workitem.CaseID]bool
}

func (tx *lateKeys) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	for _, change := range e.Changes {
		if o, ok := change.(*state.CaseOpened); ok {
			tx.opened[o.Case.ID] = true
		}
	}
	return tx.Tx.Append(ctx, e, t)
}

func (tx *lateKeys) KeyHolders(ctx context.Context, workflow, key string) ([]workitem.CaseID, error) {
	found, err := tx.Tx.KeyHolders(ctx, workflow, key)
	return slices.DeleteFunc(found, func(id workitem.CaseID) bool { return tx.opened[id] }), err
}

func (tx *lateKeys) KeyStarts(ctx context.Context, workflow, key string, after time.Time) ([]store.KeyStart, error) {
	all, err := tx.Tx.KeyStarts(ctx, workflow, key, after)
	return slices.DeleteFunc(all, func(s store.KeyStart) bool { return tx.opened[s.Case] }), err
}

func (tx *lateKeys) Successors(ctx context.Context, id workitem.CaseID) ([]workitem.CaseID, error) {
	all, err := tx.Tx.Successors(ctx, id)
	return slices.DeleteFunc(all, func(id workitem.CaseID) bool { return tx.opened[id] }), err
}

// earlyStarts lists also what was started at the time itself.
type earlyStarts struct{ store.Tx }

func (tx earlyStarts) KeyStarts(ctx context.Context, workflow, key string, after time.Time) ([]store.KeyStart, error) {
	return tx.Tx.KeyStarts(ctx, workflow, key, after.Add(-time.Microsecond))
}
