package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// A dry run says what a command would do, or why it would be refused, and does nothing.
func TestADryRunDoesNothing(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Policy{})
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	before := caseOf(t, e, id)
	require.Equal(t, state.CaseFailed, before.State)

	p, err := e.DryRun(t.Context(), workflow.Resume(id, nil, workflow.Key("k")))
	require.NoError(t, err)
	require.Equal(t, id, p.Result.Case)
	require.Len(t, p.Trees, 1)
	require.Equal(t, state.CaseStarted, p.Trees[0].Tree.Case(id).State)
	require.Equal(t, 2, p.Trees[0].Tree.Case(id).Items.Len())
	require.IsType(t, &state.CaseResumed{}, p.Trees[0].Changes[0])
	e.Drain()
	after := caseOf(t, e, id)
	require.Equal(t, state.CaseFailed, after.State)
	require.Equal(t, before.LastSeq, after.LastSeq)
	require.Equal(t, []string{"order.1.1 failed"}, e.States(id))

	p, err = e.DryRun(t.Context(), workflow.Start("shipping", []byte(`"pen"`)))
	require.NoError(t, err)
	require.Len(t, p.Trees, 1)
	_, err = e.Case(t.Context(), p.Result.Case)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = e.DryRun(t.Context(), workflow.Cancel(id, nil))
	require.ErrorIs(t, err, workflow.ErrInactive)

	s.down.Store(false)
	result, err := e.Do(t.Context(), workflow.Resume(id, nil, workflow.Key("k")))
	require.NoError(t, err, "the key of a dry run is not used up")
	require.Equal(t, id, result.Case)
}

func TestACaseAsItWas(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(2, time.Hour))
	e := enginetest.New(t, s)
	started := e.Now()
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	e.Advance(2 * time.Hour)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, nil)))
	e.Drain()
	at := func(m store.Moment) *state.Case {
		tree, err := store.At(t.Context(), e, id, m)
		require.NoError(t, err)
		return tree.Case(id)
	}
	require.Equal(t, caseOf(t, e, id).State, at(store.Moment{}).State)
	require.Equal(t, 3, at(store.Moment{}).Items.Len())
	require.Equal(t, 2, at(store.Moment{Time: started}).Items.Len(), "the second attempt waits")
	require.Equal(t, state.CaseStarted, at(store.Moment{Time: started.Add(time.Minute)}).State)
	require.Equal(t, state.CaseFailed, at(store.Moment{Time: started.Add(time.Hour)}).State)
	var entries []*store.Entry
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		entries, err = r.Journal(t.Context(), store.JournalFilter{Root: id, Limit: 1})
		return err
	}))
	first := at(store.Moment{Seq: entries[0].Seq})
	require.Equal(t, 1, first.Items.Len())
	require.Equal(t, entries[0].Seq, first.LastSeq)
	_, err = store.At(t.Context(), e, id, store.Moment{Time: started.Add(-time.Second)})
	require.ErrorIs(t, err, store.ErrNotFound)
}
