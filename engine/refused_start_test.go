package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The job of an item whose start a callback refuses each time is given up before the item has started. Each of the three repairs of its
// incident works: retry, skip and give up.
func TestAnItemThatCannotStartIsRepaired(t *testing.T) {
	t.Parallel()
	var closed atomic.Bool
	closed.Store(true)
	b := builder.New[int]("ledger")
	b.Path(b.Start(), builder.Task(b, "book", builder.Work[int, int]{Input: builder.CaseInput(b), Policy: workitem.Default(),
		Run: func(_ context.Context, n int) (int, error) { return n, nil },
		OnWorkItemStateChanged: func(context.Context, *activities.Change) error {
			if closed.Load() {
				return errors.New("the ledger is closed")
			}
			return nil
		}}), b.End())
	ledger := b.MustBuild()
	e := enginetest.New(t, ledger)
	ids := make([]workitem.CaseID, 3)
	for i := range ids {
		var err error
		ids[i], err = ledger.Start(t.Context(), e, i)
		require.NoError(t, err)
	}
	e.Advance(24 * time.Hour)
	held := make(map[workitem.CaseID]*store.Incident)
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{Kind: state.IncidentResult}) {
		require.NoError(t, err)
		require.Equal(t, workitem.Initialized, e.Item(i.Case, "book.1.1").State)
		held[i.Case] = i
	}
	require.Len(t, held, 3)

	closed.Store(false)
	tried, err := e.Do(t.Context(), workflow.Retry(held[ids[0]].Item, nil, workflow.By("ann")))
	require.NoError(t, err)
	require.NotEqual(t, held[ids[0]].Item, tried.Item)
	require.ErrorContains(t, e.Item(ids[0], "book.1.1").Failure, "its job was given up: ")
	require.ErrorContains(t, e.Item(ids[0], "book.1.1").Failure, "the ledger is closed")
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Skip(held[ids[1]].Item, []byte("7"), workflow.By("ann"))))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.GiveUp(held[ids[2]].Item, workflow.By("ann"))))
	e.Drain()
	for i, want := range []state.CaseState{state.CaseCompleted, state.CaseCompleted, state.CaseFailed} {
		require.Equal(t, want, caseOf(t, e, ids[i]).State, i)
	}
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{}) {
		require.NoError(t, err)
		require.Fail(t, "is open", i.Kind)
	}
}
