package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Case 9: a run that is canceled while it runs is canceled at once. Its context ends, its late result is refused, and its status
// never changes again.
func TestCancelWhileRunning(t *testing.T) {
	started, finish := make(chan context.Context, 1), make(chan struct{})
	a := builder.MustFunc("slow", func(ctx context.Context, n int) (int, error) {
		started <- ctx
		<-finish // it does not care about its context
		return n, nil
	})
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, 1)
	require.NoError(t, err)
	ctx := <-started
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunRunning, s.State)
	require.Equal(t, 1, s.Attempt)
	done, err := run.Cancel(t.Context(), e, workitem.Failf("changed", "the customer changed her mind"))
	require.NoError(t, err)
	require.True(t, done)
	<-ctx.Done()
	canceled, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunCanceled, canceled.State)
	close(finish)
	e.Drain()
	s, err = run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, canceled, s)
	_, err = run.Result(t.Context(), e)
	require.ErrorIs(t, err, builder.ErrCanceled)
	require.ErrorContains(t, err, "the customer changed her mind")
}

// Case 10: canceling what is unknown, or has ended, does nothing, says so, and is no error.
func TestCancelOfNothing(t *testing.T) {
	c := newCharging(t)
	run, err := c.Run(t.Context(), c.e, order{})
	require.NoError(t, err)
	c.e.Drain()
	other := builder.MustFunc("other", func(_ context.Context, n int) (int, error) { return n, nil })
	for _, cancel := range []func() (bool, error){
		func() (bool, error) { return run.Cancel(t.Context(), c.e, nil) },
		func() (bool, error) { return c.Of(workitem.CaseID{1}).Cancel(t.Context(), c.e, nil) },
		func() (bool, error) { return other.Of(run.ID).Cancel(t.Context(), c.e, nil) },
	} {
		done, err := cancel()
		require.NoError(t, err)
		require.False(t, done)
	}
	require.Equal(t, workflow.RunCompleted, c.status(t, run).State)
	later, err := c.Run(t.Context(), c.e, order{}, workflow.After(time.Hour))
	require.NoError(t, err)
	for _, want := range []bool{true, false, false} {
		done, err := later.Cancel(t.Context(), c.e, nil)
		require.NoError(t, err)
		require.Equal(t, want, done, "canceling twice is canceling once")
	}
}

// Case 24, for a run: canceled between two attempts, it has had one.
func TestCancelBetweenAttempts(t *testing.T) {
	c := newCharging(t)
	c.fails.Store(1)
	run, err := c.Run(t.Context(), c.e, order{})
	require.NoError(t, err)
	c.e.Drain()
	s := c.status(t, run)
	require.Equal(t, workflow.RunWaiting, s.State)
	require.Equal(t, c.e.Now().Add(250*time.Millisecond), s.Next)
	require.Equal(t, 1, s.Attempt)
	require.Contains(t, s.Failure.Message, "the bank is closed")
	done, err := run.Cancel(t.Context(), c.e, nil)
	require.NoError(t, err)
	require.True(t, done)
	c.e.Advance(time.Hour)
	s = c.status(t, run)
	require.Equal(t, workflow.RunCanceled, s.State)
	require.Equal(t, 1, s.Attempt)
	require.Equal(t, 1, c.calls.count())
}

// Case 11: the status of an unknown run is an error; cleaning up is one while it runs, if it is unknown, and the second time.
func TestStatusAndCleanup(t *testing.T) {
	c := newCharging(t)
	unknown := c.Of(workitem.CaseID{1, 2, 3})
	_, err := unknown.Status(t.Context(), c.e)
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = unknown.Result(t.Context(), c.e)
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.ErrorIs(t, unknown.Cleanup(t.Context(), c.e), engine.ErrNotFound)

	run, err := c.Run(t.Context(), c.e, order{}, workflow.After(time.Hour), workflow.Key("order 7"))
	require.NoError(t, err)
	require.ErrorIs(t, run.Cleanup(t.Context(), c.e), engine.ErrUnfinished)
	c.e.Advance(time.Hour)
	require.Equal(t, workflow.RunCompleted, c.status(t, run).State, "it was not touched")
	same, err := c.Run(t.Context(), c.e, order{}, workflow.Key("order 7"))
	require.NoError(t, err)
	require.Equal(t, run.ID, same.ID)

	require.NoError(t, run.Cleanup(t.Context(), c.e))
	require.ErrorIs(t, run.Cleanup(t.Context(), c.e), engine.ErrNotFound)
	_, err = run.Status(t.Context(), c.e)
	require.ErrorIs(t, err, engine.ErrNotFound)
	nothingLeft(t, c.e)
	fresh, err := c.Run(t.Context(), c.e, order{}, workflow.Key("order 7"))
	require.NoError(t, err)
	require.NotEqual(t, run.ID, fresh.ID, "the key went with the run")
}

// nothingLeft checks that the database holds no case, and nothing of one.
func nothingLeft(t testing.TB, e *enginetest.Engine) {
	t.Helper()
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		cases, err := r.Cases(t.Context(), store.CaseFilter{})
		require.NoError(t, err)
		require.Empty(t, cases)
		for _, table := range []string{"cases", "work_items", "jobs", "steps", "messages", "journal", "idempotency_keys"} {
			var n int
			require.NoError(t, r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
			require.Zero(t, n, table)
		}
		return nil
	}))
}

// Case 12: a process that is killed during an attempt is noticed when the database is opened next, and the attempt is made
// again; so is a second death. A crash is not a failed attempt (see semantics).
func TestAKilledAttemptIsMadeAgain(t *testing.T) {
	path := t.TempDir() + "/crash.db"
	started, finish := make(chan struct{}, 8), make(chan struct{})
	var calls atomic.Int32
	a := builder.MustFunc("slow", func(ctx context.Context, n int) (int, error) {
		calls.Add(1)
		started <- struct{}{}
		select {
		case <-finish:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, a)
	run, err := a.Run(t.Context(), e, 7)
	require.NoError(t, err)
	for n := range int32(2) {
		<-started
		s, err := run.Status(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, workflow.RunRunning, s.State)
		require.Equal(t, n+1, calls.Load())
		e.Crash()
	}
	<-started
	close(finish)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 7, got)
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 1, s.Attempt)
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: run.ID}) {
		require.NoError(t, err)
		require.Equal(t, 2, j.Crashes)
	}
}

// Case 13: an attempt that was declared dead and finishes late is refused: its replacement decides.
func TestALateAttemptIsRefused(t *testing.T) {
	started, finish := make(chan int32, 2), make(chan struct{})
	var calls atomic.Int32
	a := builder.MustFunc("slow", func(context.Context, int) (int, error) {
		n := calls.Add(1)
		started <- n
		if n == 1 {
			<-finish
		}
		return int(n), nil
	})
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, 0)
	require.NoError(t, err)
	<-started
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: run.ID}) {
		require.NoError(t, err)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Reclaim(j.ID)))
	}
	<-started
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 2, got)
	close(finish)
	e.Drain()
	got, err = run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 2, got, "the zombie changed nothing")
}
