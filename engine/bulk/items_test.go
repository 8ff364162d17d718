package bulk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// onBoth runs a test on each store.
func onBoth(t *testing.T, test func(t *testing.T, opener store.Opener)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, sqlite.Memory()) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, postgres.Open(pgtest.Database(t))) })
}

// newReviews returns a workflow with a task for people, and an engine with n cases of it whose items ann has started, but for the last one.
func newReviews(t *testing.T, opener store.Opener, n int) (*enginetest.Engine, *builder.Workflow[int], *bulk.Bulk, []string) {
	t.Helper()
	b := builder.New[int]("review")
	b.Path(b.Start(), builder.Task(b, "look", builder.Work[int, any]{Input: builder.CaseInput(b)}), b.End())
	w, err := b.Build()
	require.NoError(t, err)
	repairs := bulk.New(engine.Code)
	e := enginetest.Open(t, opener, engine.Config{}, w, repairs)
	for i := range n {
		_, err = w.Start(t.Context(), e, i)
		require.NoError(t, err)
	}
	e.Drain()
	items, err := bulk.Items(t.Context(), e, workitem.Cancel, store.ItemFilter{Workflow: "review"}, store.Search{})
	require.NoError(t, err)
	require.Len(t, items, n)
	for _, text := range items[:n-1] {
		id, err := workitem.ParseID(text)
		require.NoError(t, err)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(id, workitem.Start, nil, workflow.By("ann"))))
	}
	return e, w, repairs, items
}

// done executes an action, and returns its progress.
func done(t *testing.T, e *enginetest.Engine, repairs *bulk.Bulk, a bulk.Action, targets []string) *bulk.Info {
	t.Helper()
	run, err := repairs.Start(t.Context(), e, a, targets)
	require.NoError(t, err)
	e.Drain()
	i, err := bulk.InfoOf(t.Context(), e, run.ID)
	require.NoError(t, err)
	return i
}

func commandsOf(t *testing.T, e *enginetest.Engine, word string) (n int) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		entries, err := r.Journal(t.Context(), store.JournalFilter{By: "eve", Command: word})
		n = len(entries)
		return err
	}))
	return n
}

// Work items are reset, failed and canceled together: each by a command of its own with the actor and the reason.
func TestItemsAreActedOnTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, opener store.Opener) {
		e, _, repairs, items := newReviews(t, opener, 4)
		act := func(do workitem.Action, f store.ItemFilter) *bulk.Info {
			t.Helper()
			targets, err := bulk.Items(t.Context(), e, do, f, store.Search{})
			require.NoError(t, err)
			return done(t, e, repairs, bulk.Action{Kind: workflow.KindAct, Do: do, Actor: "eve", Reason: "a mistake"}, targets)
		}
		i := act(workitem.Reset, store.ItemFilter{Holder: "ann"})
		require.Equal(t, []int{3, 3, 0}, []int{i.Targets, i.Done, i.Refused})
		require.Equal(t, "item reset", i.Command())
		require.Equal(t, 3, commandsOf(t, e, "item reset"))

		first, err := workitem.ParseID(items[0])
		require.NoError(t, err)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(first, workitem.Start, nil)))
		i = act(workitem.Fail, store.ItemFilter{Task: "look"})
		require.Equal(t, []int{1, 1, 0}, []int{i.Targets, i.Done, i.Refused})
		require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
			found, err := r.Items(t.Context(), store.ItemFilter{ID: first})
			require.Len(t, found, 1)
			require.Equal(t, "a mistake", found[0].Failure.Message)
			return err
		}))

		i = act(workitem.Cancel, store.ItemFilter{})
		require.Equal(t, []int{3, 3, 0}, []int{i.Targets, i.Done, i.Refused})
		i = done(t, e, repairs, bulk.Action{Kind: workflow.KindAct, Do: workitem.Cancel}, items[:2])
		require.Equal(t, []int{2, 0, 2}, []int{i.Targets, i.Done, i.Refused}, "they have ended")
		require.NoError(t, integrity.Check(t.Context(), e))
	})
}

func TestActionsOnItemsThatCannotBeAreRefused(t *testing.T) {
	e, _, repairs, items := newReviews(t, sqlite.Memory(), 1)
	for _, a := range []bulk.Action{{Kind: workflow.KindAct}, {Kind: workflow.KindAct, Do: workitem.Complete}, {Kind: workflow.KindRetry, Do: workitem.Reset},
		{Kind: workflow.KindAct, Do: workitem.Fail, Payload: []byte(`7`)}, {Kind: workflow.KindCancel, FromStep: "a"}} {
		_, err := repairs.Start(t.Context(), e, a, items)
		require.Error(t, err, "%+v", a)
	}
	_, err := bulk.Items(t.Context(), e, workitem.Reset, store.ItemFilter{States: []workitem.State{workitem.Failed}}, store.Search{})
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	_, err = bulk.Items(t.Context(), e, workitem.Start, store.ItemFilter{}, store.Search{})
	require.ErrorIs(t, err, workflow.ErrBadCommand)
}

// Cases that have ended are restarted and removed together. A removal that was committed before a crash counts as done.
func TestEndedCasesAreRestartedAndRemovedTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, opener store.Opener) {
		o, repairs := newOrders(t, workitem.Policy{}), bulk.New(engine.Code)
		e := enginetest.Open(t, opener, engine.Config{}, o, repairs)
		startOrders(t, e, o, 5)
		find := func(kind workflow.Kind, f store.CaseFilter) []string {
			t.Helper()
			targets, err := bulk.Cases(t.Context(), e, kind, f, store.Search{})
			require.NoError(t, err)
			return targets
		}
		failed := store.CaseFilter{States: []state.CaseState{state.CaseFailed}}
		require.Len(t, find(workflow.KindRestart, failed), 5)
		_, err := bulk.Cases(t.Context(), e, workflow.KindRemove, store.CaseFilter{States: []state.CaseState{state.CaseStarted}}, store.Search{})
		require.ErrorIs(t, err, workflow.ErrBadCommand)
		o.down.Store(false)
		i := done(t, e, repairs, bulk.Action{Kind: workflow.KindRestart, Actor: "eve", Reason: "it is back"}, find(workflow.KindRestart, failed))
		require.Equal(t, []int{5, 5, 0}, []int{i.Targets, i.Done, i.Refused})
		require.Len(t, find(workflow.KindRemove, store.CaseFilter{}), 10, "no bulk action is selected")

		sent, stop := 0, make(chan struct{})
		repairs = bulk.New(engine.Code)
		repairs.Serve(doer(func(ctx context.Context, c workflow.Command) (workflow.Result, error) {
			result, err := e.Do(ctx, c)
			if sent++; sent == 2 {
				close(stop)
				<-ctx.Done()
			}
			return result, err
		}))
		e.Crash(o, repairs)
		targets := find(workflow.KindRemove, failed)
		run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRemove, Actor: "eve", Reason: "too old"}, append(targets, "0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071"))
		require.NoError(t, err)
		<-stop
		repairs = bulk.New(engine.Code)
		e.Crash(o, repairs)
		e.Drain()
		result, err := run.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 5, result.Done)
		require.Len(t, result.Refused, 1)
		require.Len(t, find(workflow.KindRemove, store.CaseFilter{}), 5)
		require.NoError(t, integrity.Check(t.Context(), e))
	})
}
