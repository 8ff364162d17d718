package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// batchLog notes the inputs of each call of a batch.
type batchLog struct {
	mu    sync.Mutex
	calls [][]int
}

func (l *batchLog) note(inputs []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, slices.Clone(inputs))
}

// take returns the calls so far, and forgets them.
func (l *batchLog) take() [][]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls = nil
	return calls
}

// doubled notes a call, and returns twice each input.
func (l *batchLog) doubled(_ context.Context, inputs []int) (list []builder.Outcome[int], err error) {
	l.note(inputs)
	for _, n := range inputs {
		list = append(list, builder.Outcome[int]{Value: 2 * n})
	}
	return list, nil
}

// runAll starts a run for each input, and has the engine do what there is to do at once.
func runAll[In, Out any](t *testing.T, e *enginetest.Engine, f *builder.FuncRef[In, Out], inputs ...In) (runs []builder.Run[Out]) {
	t.Helper()
	for _, in := range inputs {
		r, err := f.Run(t.Context(), e, in)
		require.NoError(t, err)
		e.Drain()
		runs = append(runs, r)
	}
	return runs
}

// A batch begins when it is full, or when its first run has waited long enough; each run has its own result.
func TestABatchBeginsWhenItIsFullOrItsTimeIsOver(t *testing.T) {
	var log batchLog
	f := builder.MustBatch("f", 3, 10*time.Second, log.doubled)
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, 1, 2)
	says(t, e, runs[0].ID, "item run.1.1 waits for a batch of 3 with 2 so far, and begins at the latest in 10s, at 2030-01-01T00:00:10Z")
	require.Empty(t, log.take())
	runs = append(runs, runAll(t, e, f, 3, 4)...)
	require.Equal(t, [][]int{{1, 2, 3}}, log.take(), "it is full")
	e.Advance(6 * time.Second)
	runs = append(runs, runAll(t, e, f, 5)...)
	e.Advance(4*time.Second - time.Millisecond)
	require.Empty(t, log.take())
	e.Advance(time.Millisecond)
	require.Equal(t, [][]int{{4, 5}}, log.take(), "the time of the first is over")
	for i, r := range runs {
		v, err := r.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 2*(i+1), v)
	}
	e.Advance(time.Hour)
	require.Empty(t, log.take())
}

// Of a batch each run succeeds or fails by itself, and what failed is tried again by its policy, in a later batch.
func TestTheRunsOfABatchFailByThemselves(t *testing.T) {
	var log batchLog
	f := builder.MustBatch("f", 10, time.Second, func(_ context.Context, inputs []int) ([]builder.Outcome[int], error) {
		log.note(inputs)
		list := make([]builder.Outcome[int], len(inputs))
		for i, n := range inputs {
			switch {
			case n == 2:
				list[i].Err = workitem.Fatal(errors.New("two is never right"))
			case n == 3 && len(inputs) > 2:
				list[i].Err = retry.After(time.Minute, errors.New("too many"))
			case n%2 == 0:
				list[i].Err = errors.New("it fails")
			}
			list[i].Value = n
		}
		return list, nil
	}, builder.Retry(func(p *retry.Policy) { p.Attempts, p.Initial = 2, 5*time.Second }))
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, 1, 2, 3, 4)
	e.Advance(time.Second)
	require.Equal(t, [][]int{{1, 2, 3, 4}}, log.take())
	states := func() (list []string) {
		for _, r := range runs {
			s, err := r.Status(t.Context(), e)
			require.NoError(t, err)
			list = append(list, string(s.State))
		}
		return list
	}
	require.Equal(t, []string{"completed", "failed", "waiting", "waiting"}, states())
	e.Advance(6 * time.Second)
	require.Equal(t, [][]int{{4}}, log.take())
	require.Equal(t, []string{"completed", "failed", "waiting", "failed"}, states())
	e.Advance(time.Minute)
	require.Equal(t, [][]int{{3}}, log.take())
	require.Equal(t, []string{"completed", "failed", "completed", "failed"}, states())
	_, err := runs[1].Result(t.Context(), e)
	require.ErrorContains(t, err, "two is never right")
}

// An error, a panic, the end of the goroutine, or another number of outcomes fails all runs of a batch, and each is tried again.
func TestABatchThatFailsAsAWhole(t *testing.T) {
	var log batchLog
	bad := []func() ([]builder.Outcome[int], error){
		func() ([]builder.Outcome[int], error) { return nil, errors.New("the service is down") },
		func() ([]builder.Outcome[int], error) { panic("oh") },
		func() ([]builder.Outcome[int], error) { runtime.Goexit(); return nil, nil },
		func() ([]builder.Outcome[int], error) { return make([]builder.Outcome[int], 1), nil },
	}
	f := builder.MustBatch("f", 2, time.Hour, func(ctx context.Context, inputs []int) ([]builder.Outcome[int], error) {
		if len(bad) > 0 {
			next := bad[0]
			bad = bad[1:]
			return next()
		}
		return log.doubled(ctx, inputs)
	}, builder.Retry(func(p *retry.Policy) { *p = retry.Constant(5, time.Second) }))
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, 1, 2)
	for _, want := range []string{"the service is down", "oh", "ended its goroutine", "returned 1 outcomes for 2 inputs"} {
		for _, r := range runs {
			s, err := r.Status(t.Context(), e)
			require.NoError(t, err)
			require.Contains(t, s.Failure.Message, want)
		}
		e.Advance(time.Second)
	}
	calls := log.take()
	require.Len(t, calls, 1)
	require.ElementsMatch(t, []int{1, 2}, calls[0], "they were settled in any order")
	for i, r := range runs {
		s, err := r.Status(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 2*(i+1), s.Value)
		require.Equal(t, 5, s.Attempt)
	}
}

// A batch holds one worker of its queue, however many runs it does, and is served in the order of the queue.
func TestABatchHoldsOneWorker(t *testing.T) {
	var c callLog
	sizes := make(chan int, 100)
	f := builder.MustBatch("f", 4, time.Second, func(_ context.Context, inputs []int) ([]builder.Outcome[int], error) {
		c.begin()
		defer c.end()
		sizes <- len(inputs)
		<-time.After(10 * time.Second)
		return make([]builder.Outcome[int], len(inputs)), nil
	})
	var alone callLog
	other := builder.MustFunc("other", busyFor(&alone, time.Second))
	inBubble(t, engine.Config{Workers: 2}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, f, numbers(22)...)
		<-time.After(5 * time.Second)
		urgent, err := other.Run(t.Context(), e, 1, workflow.Priority(1))
		require.NoError(t, err)
		endAll(t, e, []builder.Run[int]{urgent})
		require.Equal(t, 11*time.Second, time.Since(begin).Round(time.Second), "both workers have batches; it goes before the third")
		endAll(t, e, runs)
		require.Equal(t, 31*time.Second, time.Since(begin).Round(time.Second), "one of the workers did the other one")
		require.Equal(t, 2, c.highest())
		require.Len(t, sizes, 6)
	}, f, other)
}

// Runs that are canceled are not in a batch, also not in its number. One that is canceled while the batch is done loses its outcome alone,
// and the context of the batch ends when all are.
func TestRunsOfABatchAreCanceled(t *testing.T) {
	var log batchLog
	begun, ended := make(chan struct{}), make(chan error, 1)
	f := builder.MustBatch("f", 3, time.Minute, func(ctx context.Context, inputs []int) ([]builder.Outcome[int], error) {
		if inputs[0] > 100 {
			close(begun)
			<-ctx.Done()
			ended <- ctx.Err()
		}
		return log.doubled(ctx, inputs)
	})
	e := enginetest.New(t, f)
	cancel := func(r builder.Run[int]) {
		t.Helper()
		ok, err := r.Cancel(t.Context(), e, nil)
		require.NoError(t, err)
		require.True(t, ok)
	}
	runs := runAll(t, e, f, 1, 2)
	cancel(runs[0])
	runs = append(runs, runAll(t, e, f, 3)...)
	require.Empty(t, log.take())
	runAll(t, e, f, 4)
	require.Equal(t, [][]int{{2, 3, 4}}, log.take())

	for _, n := range []int{101, 102, 103} {
		r, err := f.Run(t.Context(), e, n)
		require.NoError(t, err)
		runs = append(runs, r)
	}
	<-begun
	for _, r := range runs[3:] {
		require.Empty(t, ended)
		cancel(r)
	}
	require.ErrorIs(t, <-ended, context.Canceled)
	e.Drain()
	for _, r := range runs[3:] {
		require.Equal(t, state.CaseCanceled, caseOf(t, e, r.ID).State)
	}
}

// The time of a batch is that since its first run was due, over a crash too. After a crash of the process in which they ran, runs are done
// alone, so that one that ends the process takes no others with it.
func TestABatchOverACrash(t *testing.T) {
	var log batchLog
	hang := make(chan struct{}, 1)
	f := builder.MustBatch("f", 3, 10*time.Second, func(ctx context.Context, inputs []int) ([]builder.Outcome[int], error) {
		select {
		case <-hang:
			<-ctx.Done()
			return nil, ctx.Err()
		default:
			return log.doubled(ctx, inputs)
		}
	})
	e := enginetest.New(t, f)
	runAll(t, e, f, 1, 2)
	e.Advance(7 * time.Second)
	e.Crash(f)
	e.Drain()
	require.Empty(t, log.take())
	e.Advance(3*time.Second - time.Millisecond)
	require.Empty(t, log.take())
	e.Advance(time.Millisecond)
	require.Equal(t, [][]int{{1, 2}}, log.take())

	hang <- struct{}{}
	for _, n := range []int{3, 4, 5} {
		_, err := f.Run(t.Context(), e, n)
		require.NoError(t, err)
	}
	for len(hang) > 0 {
		runtime.Gosched()
	}
	e.Crash(f)
	e.Drain()
	calls := log.take()
	slices.SortFunc(calls, func(a, b []int) int { return a[0] - b[0] })
	require.Equal(t, [][]int{{3}, {4}, {5}}, calls)
}

// Each run of a batch takes its limits by itself. One that cannot waits for them, and the others go.
func TestTheRunsOfABatchTakeLimits(t *testing.T) {
	var log batchLog
	f := builder.MustBatch("f", 4, time.Second, log.doubled,
		builder.Limits(builder.TakesBy(limit.Rate("of", 2, time.Minute, limit.FixedWindow), 1, func(n int) string { return fmt.Sprint(n % 2) })))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, 1, 3, 5, 7)
		<-time.After(2 * time.Second)
		require.Equal(t, [][]int{{1, 3}}, log.take())
		says(t, e, runs[2].ID, "item run.1.1 waits for 1 of rate of, free in")
		runs = append(runs, startAll(t, e, f, 2)...)
		<-time.After(2 * time.Second)
		require.Equal(t, [][]int{{2}}, log.take())
		endAll(t, e, runs)
		require.Equal(t, [][]int{{5, 7}}, log.take())
	}, f)
}

// A run that has waited for others, and then for a limit, does not wait for others again.
func TestARunOfABatchWaitsForOthersOnce(t *testing.T) {
	var log batchLog
	f := builder.MustBatch("f", 2, time.Hour, log.doubled, builder.Limits(builder.Takes(limit.Rate("one", 1, time.Minute, limit.FixedWindow), 1)))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		endAll(t, e, startAll(t, e, f, 1, 2))
		require.Equal(t, [][]int{{1}, {2}}, log.take())
		require.Equal(t, time.Minute, time.Since(begin).Round(time.Minute))
	}, f)
}

// What waited for a limit and was canceled makes no batch begin early.
func TestABatchWhoseRunsWereCanceledWaitsForOthers(t *testing.T) {
	var log batchLog
	var c callLog
	f := builder.MustBatch("f", 2, time.Hour, log.doubled, builder.OnQueue("q"),
		builder.Limits(builder.Takes(limit.Rate("two", 2, time.Minute, limit.FixedWindow), 1)))
	other := builder.MustFunc("other", busyFor(&c, 5*time.Minute), builder.OnQueue("q"))
	inBubble(t, engine.Config{Queues: map[string]int{"q": 1}}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, 1, 2, 3, 4)
		<-time.After(30 * time.Second)
		runs = append(runs, startAll(t, e, other, 1)...)
		<-time.After(time.Minute)
		require.Equal(t, [][]int{{1, 2}}, log.take())
		for _, r := range runs[2:4] {
			ok, err := r.Cancel(t.Context(), e, nil)
			require.NoError(t, err)
			require.True(t, ok, "it has room and no worker")
		}
		runs = append(runs[:2], startAll(t, e, f, 5)...)
		<-time.After(10 * time.Minute)
		require.Empty(t, log.take())
		endAll(t, e, append(runs, startAll(t, e, f, 6)...))
		require.Equal(t, [][]int{{5, 6}}, log.take())
	}, f, other)
}

// Runs that are due as an engine is opened are a batch, also if the time of the first is over.
func TestABatchOfABacklog(t *testing.T) {
	for _, opts := range [][]builder.FuncOption{nil, {builder.Limits(builder.Takes(limit.Calls(100, time.Minute), 0))}} {
		var log batchLog
		f := builder.MustBatch("f", 10, time.Second, log.doubled, append(opts, builder.OnQueue("q"))...)
		e := enginetest.New(t, f)
		_, err := e.Do(t.Context(), workflow.PauseQueue("q"))
		require.NoError(t, err)
		runAll(t, e, f, numbers(25)...)
		e.Advance(time.Minute)
		e.Crash(f)
		_, err = e.Do(t.Context(), workflow.ResumeQueue("q"))
		require.NoError(t, err)
		e.Drain()
		calls := log.take()
		slices.SortFunc(calls, func(a, b []int) int { return len(b) - len(a) })
		require.Len(t, calls, 3)
		require.Len(t, calls[0], 10)
		require.Len(t, calls[2], 5)
	}
}

// touchy cannot be written as JSON if it is two.
type touchy int

func (v touchy) MarshalJSON() ([]byte, error) {
	if v == 2 {
		panic("two is not written")
	}
	return fmt.Append(nil, int(v)), nil
}

// A value that panics as it is written fails its own run.
func TestAValueOfABatchThatCannotBeWritten(t *testing.T) {
	f := builder.MustBatch("f", 3, time.Hour, func(_ context.Context, inputs []int) (list []builder.Outcome[touchy], err error) {
		for _, n := range inputs {
			list = append(list, builder.Outcome[touchy]{Value: touchy(n)})
		}
		return list, nil
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, 1, 2, 3)
	for i, want := range []workflow.RunState{workflow.RunCompleted, workflow.RunFailed, workflow.RunCompleted} {
		s, err := runs[i].Status(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, want, s.State)
	}
	_, err := runs[1].Result(t.Context(), e)
	require.ErrorContains(t, err, "two is not written")
}

// The runs of a paused queue are not gathered.
func TestABatchOfAPausedQueue(t *testing.T) {
	var log batchLog
	f := builder.MustBatch("f", 3, 10*time.Second, log.doubled, builder.OnQueue("q"))
	e := enginetest.New(t, f)
	runAll(t, e, f, 1, 2)
	_, err := e.Do(t.Context(), workflow.PauseQueue("q"))
	require.NoError(t, err)
	runs := runAll(t, e, f, 3)
	e.Advance(time.Minute)
	require.Empty(t, log.take())
	says(t, e, runs[0].ID, `queue q is paused`)
	_, err = e.Do(t.Context(), workflow.ResumeQueue("q"))
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, [][]int{{1, 2, 3}}, log.take())
}

// A batch that its hours keep back is not late, also while no worker is free.
func TestABatchOutOfItsHoursIsNotOverdue(t *testing.T) {
	var log batchLog
	var c callLog
	f := builder.MustBatch("f", 2, time.Second, log.doubled, builder.Hours(schedule.MustParseWindow("09:00-17:00", "UTC")))
	other := builder.MustFunc("other", busyFor(&c, time.Hour))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := append(startAll(t, e, other, 1), startAll(t, e, f, 1, 2)...)
		<-time.After(time.Minute)
		require.Empty(t, e.Overdue())
		endAll(t, e, runs)
		require.Equal(t, [][]int{{1, 2}}, log.take())
		require.Equal(t, 9*time.Hour, time.Since(begin).Round(time.Minute))
	}, f, other)
}

// The function of a batch knows its jobs, and has no steps.
func TestBatchFunctionHasJobsAndNoSteps(t *testing.T) {
	var keys []string
	f := builder.MustBatch("f", 2, time.Second, func(ctx context.Context, inputs []string) ([]builder.Outcome[string], error) {
		var list []builder.Outcome[string]
		for i, w := range builder.WorksFrom(ctx) {
			keys = append(keys, inputs[i]+" "+w.Case.ID.String())
			err := step.Sleep(ctx, "nap", time.Second)
			list = append(list, builder.Outcome[string]{Value: fmt.Sprint(err)})
		}
		return list, nil
	})
	require.Nil(t, builder.WorksFrom(t.Context()))
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, "a", "b")
	require.Equal(t, []string{"a " + runs[0].ID.String(), "b " + runs[1].ID.String()}, keys)
	v, err := runs[0].Result(t.Context(), e)
	require.NoError(t, err)
	require.Contains(t, v, "step")
}

// The items of a task are done together, over all cases of a workflow.
func TestTheItemsOfATaskAreABatch(t *testing.T) {
	var log batchLog
	b := builder.New[[]int]("w")
	double := builder.Task(b, "double", builder.Work[int, int]{
		Items: func(_ context.Context, a *activities.Activation) ([]int, error) {
			return builder.CaseInputOf[[]int](a.Case())
		},
		Batch: builder.Batched[int, int]{Most: 5, Wait: time.Minute, Run: log.doubled},
	})
	b.Path(b.Start(), double, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	first, err := w.Start(t.Context(), e, []int{1, 2, 3})
	require.NoError(t, err)
	second, err := w.Start(t.Context(), e, []int{4, 5, 6})
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, [][]int{{1, 2, 3, 4, 5}}, log.take())
	require.Equal(t, state.CaseCompleted, caseOf(t, e, first).State)
	says(t, e, second, "item double.1.3 waits for a batch of 5 with 1 so far, and begins at the latest in 1m")
	e.Advance(time.Minute)
	require.Equal(t, [][]int{{6}}, log.take())
}
