package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A command that fails in an Update is undone alone, with the rows that its callbacks wrote and its idempotency key: the function
// may continue, and what it does besides is committed.
func TestACommandOfAnUpdateIsUndoneAlone(t *testing.T) {
	full := errors.New("the warehouse is full")
	b := builder.New[any]("w")
	first := builder.Task(b, "first", builder.Work[any, any]{})
	second := builder.Task(b, "second", builder.Work[any, any]{
		Initialize: func(ctx context.Context, it *activities.Item, _ any) error {
			if _, err := it.DB().ExecContext(ctx, "INSERT INTO seen VALUES (1)"); err != nil {
				return err
			}
			return full
		},
	})
	b.Path(b.Start(), first, second, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	item := live(t, e, id, "first").ID
	var other workitem.CaseID
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE seen (x INTEGER)")
		require.NoError(t, err)
		require.NoError(t, first.Start(t.Context(), tx, item))
		require.ErrorIs(t, first.Complete(t.Context(), tx, item, nil, workflow.Key("k")), full)
		c, err := tx.Case(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, workitem.Started, c.Item(item).State)
		_, err = w.Start(t.Context(), tx, nil, workflow.Priority(1), workflow.Key("k"), nil)
		require.NoError(t, err)
		other, err = w.Start(t.Context(), tx, nil)
		return err
	}))
	require.Equal(t, []string{"first.1.1 started 1"}, items(t, e, id))
	require.Equal(t, []string{"first.1.1 initialized 1"}, items(t, e, other))
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		var n int
		require.NoError(t, r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM seen").Scan(&n))
		require.Zero(t, n)
		return nil
	}))
}

// A start that fails leaves no case behind, and one that follows in the same transaction is stored.
func TestAStartOfAnUpdateIsUndoneAlone(t *testing.T) {
	fail := true
	b := builder.New[any]("w")
	b.OnInitialized(func(context.Context, *activities.Case) error {
		if fail {
			return errors.New("no")
		}
		return nil
	})
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{}), b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	var kept []workitem.CaseID
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		for i := range 2000 {
			fail = i%2 == 0
			id, err := w.Start(t.Context(), tx, nil, workflow.Key("k"+string(rune('a'+i))))
			require.Equal(t, fail, err != nil)
			if err == nil {
				kept = append(kept, id)
			}
		}
		return nil
	}))
	var there []workitem.CaseID
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		there = append(there, c.ID)
	}
	require.Equal(t, kept, there)
}
