package bulk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Cases that were restarted are not restarted again by a second action, unless that is forced. What failed again, and what is restarted
// after the selection, is judged when its turn comes.
func TestASecondRestartLeavesOutWhatWasRestarted(t *testing.T) {
	o, repairs := newOrders(t, workitem.Incident(workitem.Default())), bulk.New(engine.Code)
	e := enginetest.New(t, o, repairs)
	ids := startOrders(t, e, o, 4)
	for _, id := range ids {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	}
	all := store.CaseFilter{States: []state.CaseState{state.CaseCanceled}}
	find := func() (left []string, restarted []bulk.Restarted) {
		t.Helper()
		targets, err := bulk.Cases(t.Context(), e, workflow.KindRestart, all, store.Search{})
		require.NoError(t, err)
		left, restarted, err = bulk.WithoutRestarted(t.Context(), e, append(targets, "no id"))
		require.NoError(t, err)
		require.Equal(t, "no id", left[len(left)-1], "it is refused later")
		return left[:len(left)-1], restarted
	}
	act := func(a bulk.Action, targets []string) bulk.Result {
		t.Helper()
		a.Kind = workflow.KindRestart
		run, err := repairs.Start(t.Context(), e, a, targets)
		require.NoError(t, err)
		e.Drain()
		result, err := run.Result(t.Context(), e)
		require.NoError(t, err)
		return result
	}

	result, err := e.Do(t.Context(), workflow.Restart(ids[0]))
	require.NoError(t, err)
	first, restarted := find()
	require.Len(t, first, 3)
	require.Equal(t, []bulk.Restarted{{Case: ids[0], Successor: result.Case}}, restarted)
	require.Equal(t, 3, act(bulk.Action{}, first).Done)
	left, restarted := find()
	require.Empty(t, left)
	require.Len(t, restarted, 4)

	// The targets of another action that was selected at the same time are refused by then.
	second := act(bulk.Action{}, first)
	require.Zero(t, second.Done)
	require.Len(t, second.Refused, 3)
	require.Equal(t, "restarted", second.Refused[0].Code)
	require.Contains(t, second.Refused[0].Error, restarted[1].Successor.String())
	require.Equal(t, 3, act(bulk.Action{Force: true}, first).Done)

	// A restart that failed is restarted itself, and one that was removed does not count.
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(result.Case, nil)))
	left, _ = find()
	require.Equal(t, []string{result.Case.String()}, left)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Remove(result.Case)))
	left, _ = find()
	require.Equal(t, []string{ids[0].String()}, left)
}

// In one transaction, a case is restarted once, and not if it was forked.
func TestARestartUnlessRestartedSeesItsTransaction(t *testing.T) {
	o := newOrders(t, workitem.Incident(workitem.Default()))
	e := enginetest.New(t, o)
	ids := startOrders(t, e, o, 2)
	var seq int64
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		entries, err := r.Journal(t.Context(), store.JournalFilter{Root: ids[1], Limit: 1})
		seq = entries[0].Seq
		return err
	}))
	forked, err := e.Do(t.Context(), workflow.Fork(ids[1], seq))
	require.NoError(t, err)
	for _, id := range ids {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	}
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		once := workflow.Restart(ids[0], workflow.UnlessRestarted())
		first, err := tx.Do(t.Context(), once)
		require.NoError(t, err)
		_, err = tx.Do(t.Context(), once)
		require.ErrorIs(t, err, workflow.ErrRestarted)
		require.ErrorContains(t, err, first.Case.String())
		_, err = tx.Do(t.Context(), workflow.Restart(ids[1], workflow.UnlessRestarted()))
		require.ErrorIs(t, err, workflow.ErrRestarted)
		require.ErrorContains(t, err, forked.Case.String())
		return nil
	}))
}
