package bulk_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A suspended action stops before its next target, also over a crash. What was refused so far is known. When it is resumed, it continues
// where it was, also if the engine crashes then, and each target gets one command.
func TestAnActionIsPausedBetweenTargets(t *testing.T) {
	t.Parallel()
	for name, opener := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(*testing.T) store.Opener { return sqlite.Memory() },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pauseAndResume(t, opener(t))
		})
	}
}

func pauseAndResume(t *testing.T, opener store.Opener) {
	o, repairs := newOrders(t, workitem.Policy{}), bulk.New(engine.Code)
	e := enginetest.Open(t, opener, engine.Config{}, o, repairs)
	ids := startOrders(t, e, o, 10)
	targets, err := bulk.Failed(t.Context(), e, store.CaseFilter{Workflow: "order"}, "supplier-down")
	require.NoError(t, err)
	require.Len(t, targets, 10)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Remove(ids[1]))) // this target is refused
	o.down.Store(false)

	var run workitem.CaseID
	started, sent := make(chan struct{}), 0
	repairs.Serve(doer(func(ctx context.Context, c workflow.Command) (workflow.Result, error) {
		<-started
		if sent++; sent == 3 {
			require.NoError(t, enginetest.Do(ctx, e, workflow.Suspend(run, workflow.By("ann"), workflow.Because("it is too fast"))))
		}
		return e.Do(ctx, c)
	}))
	handle, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindResume}, targets)
	require.NoError(t, err)
	run = handle.ID
	close(started)
	e.Drain()
	require.Equal(t, 3, sent, "the command that was under way is the last one")
	paused := func() {
		t.Helper()
		i, err := bulk.InfoOf(t.Context(), e, run)
		require.NoError(t, err)
		require.Equal(t, bulk.Paused, i.State)
		require.Equal(t, []int{10, 2, 1, 3}, []int{i.Targets, i.Done, i.Refused, i.Answered()})
		require.Len(t, i.Refusals, 1)
		require.Equal(t, targets[1], i.Refusals[0].Target)
		require.Equal(t, "not-found", i.Refusals[0].Code)
	}
	paused()

	sent = 0
	stop := make(chan struct{})
	repairs = bulk.New(engine.Code)
	repairs.Serve(doer(func(ctx context.Context, c workflow.Command) (workflow.Result, error) {
		if sent++; sent == 4 {
			close(stop)
			<-ctx.Done()
			return workflow.Result{}, ctx.Err()
		}
		return e.Do(ctx, c)
	}))
	e.Crash(o, repairs)
	e.Advance(time.Hour)
	require.Zero(t, sent)
	paused()
	require.NoError(t, repairs.Of(run).Resume(t.Context(), e))
	<-stop
	repairs = bulk.New(engine.Code)
	e.Crash(o, repairs)
	repairs.Serve(e)
	e.Advance(time.Hour)
	result, err := repairs.Of(run).Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 9, result.Done)
	require.Len(t, result.Refused, 1)
	for i, id := range ids {
		if i != 1 {
			require.Equal(t, []string{"ask.1.1 failed", "ask.1.2 completed"}, e.States(id), "it was resumed once")
		}
	}
	var list []*bulk.Info
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		list, err = bulk.List(t.Context(), r, store.Page{Desc: true})
		return err
	}))
	require.Len(t, list, 1)
	require.Equal(t, "completed", list[0].State)
	require.Equal(t, 1, list[0].Refused)
	require.Empty(t, list[0].Refusals)
}

// An action is canceled while the command of a target is under way. The step of that target has no result, but its command has had its effect.
func TestACanceledActionCountsTheCommandThatWasUnderWay(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		o, repairs := newOrders(t, workitem.Policy{}), bulk.New(engine.Code)
		e := enginetest.New(t, o, repairs)
		ids := startOrders(t, e, o, 5)
		targets, err := bulk.Failed(t.Context(), e, store.CaseFilter{Workflow: "order"}, "supplier-down")
		require.NoError(t, err)
		require.Len(t, targets, 5)
		if refused {
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Remove(ids[2])))
		}
		o.down.Store(false)
		var run workitem.CaseID
		started, sent := make(chan struct{}), 0
		repairs.Serve(doer(func(_ context.Context, c workflow.Command) (workflow.Result, error) {
			<-started
			if sent++; sent < 3 {
				return e.Do(t.Context(), c)
			}
			r, err := e.Do(t.Context(), c)
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(run, nil)))
			return r, err
		}))
		handle, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindResume}, targets)
		require.NoError(t, err)
		run = handle.ID
		close(started)
		e.Drain()
		want := 3
		if refused {
			want = 2
		}
		i, err := bulk.InfoOf(t.Context(), e, run)
		require.NoError(t, err)
		require.Equal(t, "canceled", i.State)
		require.Equal(t, want, i.Done)
		resumed := 0
		for _, id := range ids {
			if c, err := e.Case(t.Context(), id); err == nil && c.State != state.CaseFailed {
				resumed++
			}
		}
		require.Equal(t, want, resumed, "what the action says is what it did")
	}
}
