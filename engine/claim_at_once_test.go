package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The job of a task without callbacks is claimed in the transaction of the start. Starting its item withdraws another task, whose hook
// refuses that once: the start stands nevertheless, and the job is claimed later.
func TestAClaimWithinAStartIsRefusedByAnotherTask(t *testing.T) {
	b := builder.New[any]("choice")
	withdrawn, ran := 0, 0
	work := builder.Task(b, "work", builder.Work[any, any]{Run: func(context.Context, any) (any, error) {
		ran++
		return nil, nil
	}})
	other := builder.Task(b, "other", builder.Work[any, any]{OnDisabled: func(context.Context, *activities.Activation) error {
		if withdrawn++; withdrawn == 1 {
			return errors.New("not now")
		}
		return nil
	}})
	b.Path(b.Start(), work, b.End())
	b.Path(b.Start(), other, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	e.Drain()
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	require.Equal(t, 1, ran)
	require.Equal(t, 2, withdrawn)
}

// What a callback has kept is refused also while a callback of a later command has control.
func TestACallbackKeepsItsItem(t *testing.T) {
	var kept *activities.Item
	var late error
	b := builder.New[any]("kept")
	work := builder.Task(b, "work", builder.Work[any, any]{
		Start: func(_ context.Context, it *activities.Item) error {
			kept = it
			return nil
		},
		Complete: func(context.Context, *activities.Item, any) error {
			late = kept.Cancel(nil)
			return nil
		},
	})
	b.Path(b.Start(), work, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id := start(t, e, w, any(nil))
	it := itemsOf(t, e, id)[0]
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Start, nil)))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Complete, nil)))
	require.ErrorIs(t, late, kernel.ErrAbandoned)
}
