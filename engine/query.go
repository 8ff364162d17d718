package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/internal/argument"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Reads do not go through the writer: they use a separate connection, see what is committed, and delay no command. A
// command is acknowledged after its commit, so a read that follows sees it. Code that must see uncommitted changes, as
// within an Update, uses its Tx.

// View runs f on a consistent snapshot, which includes everything that was acknowledged before the call. f must not
// call the engine, which may have to wait for the end of the view.
func (e *Engine) View(ctx context.Context, f func(store.Reader) error) error {
	argument.Context(ctx, "Engine.View")
	if f == nil {
		return errors.New("View: there is no function to call: it is nil")
	}
	if err := commit.NotNested(ctx); err != nil {
		return err
	}
	err := e.store.View(ctx, f)
	if err != nil && errors.Is(err, fs.ErrClosed) && e.isClosing() {
		return e.closedError()
	}
	return e.stopIfLost(err)
}

// isClosing reports whether Close has begun.
func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// Case returns a case of any state. The error wraps [ErrNotFound] if there is none.
func (e *Engine) Case(ctx context.Context, id workitem.CaseID) (*state.Case, error) {
	tree, err := store.TreeOf(ctx, e, id)
	if err != nil {
		return nil, err
	}
	return tree.Case(id), nil
}

// Item returns a work item of any state. The error wraps [ErrNotFound] if there is none.
func (e *Engine) Item(ctx context.Context, id workitem.ID) (*store.ItemRow, error) {
	if !id.IsZero() { // the zero id would mean no filter
		for row, err := range store.AllItems(ctx, e, store.ItemFilter{ID: id}) {
			return row, err
		}
	}
	return nil, fmt.Errorf("work item %s: %w", printable.ID(id), ErrNotFound)
}

// rootOf returns the root case of an item, a case or a job. The writer knows those of the trees in memory, which are
// most of those that callers ask for.
// The root of an id never changes, so an answer from memory is as good as one from the store.
func (e *Engine) rootOf(ctx context.Context, id [16]byte) (workitem.CaseID, error) {
	if root, ok := e.writer.RootOf(id); ok {
		return root, nil
	}
	var root workitem.CaseID
	err := e.View(ctx, func(r store.Reader) (err error) {
		root, err = r.Root(ctx, id)
		return err
	})
	return root, err
}
