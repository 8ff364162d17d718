package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// trying is a workflow whose one task fails as often as the policy lets it, in a queue. It notes the attempt that each
// run is given.
func trying(p retry.Policy, queue string, given *[]int) *builder.Workflow[page] {
	b := builder.New[page]("trying")
	fetch := builder.Task(b, "fetch", builder.Work[page, fetched]{
		Input: builder.CaseInput(b), Queue: queue, OnWorkItemStateChanged: activities.Retry(p),
		Run: func(ctx context.Context, _ page) (fetched, error) {
			w, _ := builder.WorkFrom(ctx)
			*given = append(*given, w.Attempt)
			return fetched{}, errBusy
		},
	})
	b.Path(b.Start(), fetch, b.End())
	return b.MustBuild()
}

// An item of a task with a Run, and every fresh one after a failure, comes with the one job that runs it, due when the
// item is.
func TestAnItemsJobIsMadeWithIt(t *testing.T) {
	w := trying(retry.Exponential(3, time.Second), "", new([]int))
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: -1}, w) // no job is run
	id := start(t, e, w, page{})
	it := itemsOf(t, e, id)[0]
	made := listed(t, e, func(r store.Reader) ([]*state.Job, error) { return r.Jobs(t.Context(), store.JobFilter{Item: it.ID}) })
	require.Len(t, made, 1)
	require.Equal(t, state.JobRun, made[0].Kind)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Start, nil)))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Fail, nil)))
	again := itemsOf(t, e, id)[1]
	made = listed(t, e, func(r store.Reader) ([]*state.Job, error) {
		return r.Jobs(t.Context(), store.JobFilter{Item: again.ID})
	})
	require.Len(t, made, 1)
	require.Equal(t, again.Due, made[0].Due)
	require.Equal(t, e.Now().Add(time.Second), made[0].Due)
}

// The number of the attempt is kept with each item, and each run is given it.
func TestTheAttemptsNumberIsKept(t *testing.T) {
	var given []int
	w := trying(retry.Exponential(3, time.Second), "", &given)
	e := enginetest.New(t, w)
	id := start(t, e, w, page{})
	e.Advance(time.Hour)
	var kept []int
	for _, it := range itemsOf(t, e, id) {
		kept = append(kept, it.Attempt)
	}
	require.Equal(t, []int{1, 2, 3}, kept)
	require.Equal(t, kept, given)
}

// A queue with one worker keeps the policy of what it runs: as many attempts, after the same waits.
func TestAQueueKeepsThePolicy(t *testing.T) {
	p := retry.Table(3*time.Second, 5*time.Second)
	p.Filters = []retry.Filter{retry.On(errBusy)}
	var given []int
	w := trying(p, "pool", &given)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Queues: map[string]int{"pool": 1}}, w)
	start(t, e, w, page{})
	start(t, e, w, page{})
	for at, want := range []int{2, 2, 2, 4, 4, 4, 4, 4, 6} {
		e.Drain()
		require.Len(t, given, want, "after %d s", at)
		e.Advance(time.Second)
	}
}

// After the last attempt the policy of the task decides, and not before.
func TestAfterTheLastAttemptThePolicyDecides(t *testing.T) {
	for name, c := range map[string]struct {
		policy workitem.Policy
		want   state.CaseState
	}{"default": {workitem.Default(), state.CaseFailed}, "continue": {workitem.ContinueOnFailure(), state.CaseCompleted}} {
		t.Run(name, func(t *testing.T) {
			w := single(t, builder.Work[int, int]{
				Run:                    func(context.Context, int) (int, error) { return 0, errBusy },
				OnWorkItemStateChanged: activities.Retry(retry.Constant(3, time.Second)), Policy: c.policy,
			})
			e := enginetest.New(t, w)
			id := start(t, e, w, 1)
			e.Advance(time.Second)
			there, err := e.Case(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, state.CaseStarted, there.State, "an attempt is left")
			e.Advance(time.Second)
			there, err = e.Case(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, c.want, there.State)
			require.Len(t, itemsOf(t, e, id), 3)
		})
	}
}

// A result is waited for without polling: the clock of this engine does not move. Then the run is cleaned up.
func TestAResultIsWaitedForAndItsRunCleanedUp(t *testing.T) {
	release := make(chan struct{})
	a := builder.MustFunc("slow", func(_ context.Context, n int) (int, error) { <-release; return n, nil })
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, 7)
	require.NoError(t, err)
	go close(release)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 7, got)
	require.NoError(t, run.Cleanup(t.Context(), e))
	_, err = run.Status(t.Context(), e)
	require.ErrorIs(t, err, engine.ErrNotFound)
	nothingLeft(t, e)
}

// A function that sleeps leaves its worker to others.
func TestASleepHoldsNoWorker(t *testing.T) {
	var begun atomic.Int32
	a := builder.MustFunc("sleeper", func(ctx context.Context, n int) (int, error) {
		begun.Add(1)
		return n, step.Sleep(ctx, "nap", time.Hour)
	})
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: 1}, a)
	for n := range 5 {
		_, err := a.Run(t.Context(), e, n)
		require.NoError(t, err)
	}
	e.Drain()
	require.EqualValues(t, 5, begun.Load())
}

// A list that a step gave is remembered: the function continues with it, though the source has changed meanwhile.
func TestAListFromAStepIsRemembered(t *testing.T) {
	var listings atomic.Int32
	a := builder.MustFunc("all", func(ctx context.Context, _ page) ([]string, error) {
		list, err := step.Do(ctx, "list", func(context.Context) ([]string, error) {
			n := listings.Add(1)
			return []string{fmt.Sprint("a", n), fmt.Sprint("b", n)}, nil
		})
		if err != nil {
			return nil, err
		}
		if err := step.Sleep(ctx, "pause", time.Hour); err != nil {
			return nil, err
		}
		return step.Map(ctx, list, 0, func(ctx context.Context, _ int, s string) (string, error) {
			return step.Do(ctx, "do "+s, func(context.Context) (string, error) { return s + "!", nil })
		})
	})
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, page{})
	require.NoError(t, err)
	e.Drain()
	e.Crash()
	e.Advance(time.Hour)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, []string{"a1!", "b1!"}, got)
	require.EqualValues(t, 1, listings.Load())
}

// A step is not tried again unless it says so.
func TestAStepHasNoRetryUnlessItSaysSo(t *testing.T) {
	var called atomic.Int32
	a := builder.MustFunc("once", func(ctx context.Context, _ page) (fetched, error) {
		return step.Do(ctx, "fetch", func(context.Context) (fetched, error) {
			called.Add(1)
			return fetched{}, errors.New("down")
		})
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, page{})
	require.NoError(t, err)
	e.Advance(time.Hour)
	_, err = run.Result(t.Context(), e)
	require.ErrorContains(t, err, "down")
	require.EqualValues(t, 1, called.Load())
}
