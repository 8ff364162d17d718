package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A repair with an idempotency key is one entry of the journal, with its changes, its key and its result: whoever lists what somebody asked for
// finds it once. Sent again, it has the same result, and beside other commands of a transaction an entry of its own.
func TestAKeyedRepairIsOneEntry(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w, _ := parcels(t)
	e := enginetest.New(t, w)
	fail := func() workitem.CaseID {
		id, err := w.Start(ctx, e, parcel{})
		require.NoError(t, err)
		it := packItem(t, e, id)
		require.NoError(t, enginetest.Do(ctx, e, workflow.Act(it, workitem.Start, nil)))
		require.NoError(t, enginetest.Do(ctx, e, workflow.Fail(it, &workitem.Failure{Code: "lost"})))
		return id
	}
	asked := func(id workitem.CaseID) (entries []*store.Entry) {
		for entry, err := range store.AllEntries(ctx, e, store.JournalFilter{Root: id, By: "ann"}) {
			require.NoError(t, err)
			entries = append(entries, entry)
		}
		return entries
	}
	id := fail()
	again := workflow.Resume(id, nil, workflow.By("ann"), workflow.Key("once"))
	first, err := e.Do(ctx, again)
	require.NoError(t, err)
	second, err := e.Do(ctx, again)
	require.NoError(t, err)
	require.Equal(t, first, second)
	entries := asked(id)
	require.Len(t, entries, 1)
	require.NotEmpty(t, entries[0].Changes)
	require.Equal(t, "once", entries[0].Key)

	other := fail()
	require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
		for _, c := range []workflow.Command{workflow.Resume(other, nil, workflow.By("ann"), workflow.Key("other")), workflow.Suspend(other, workflow.By("ann"))} {
			if _, err := tx.Do(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}))
	entries = asked(other)
	require.Len(t, entries, 2)
	require.Equal(t, "other", entries[0].Key)
	require.Empty(t, entries[1].Key)
}
