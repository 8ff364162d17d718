package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// Case 7: a handler that fails undoes what it did, alone: the run stays as it ended. A job tells it again, with a
// backoff.
func TestAFailedCompletionHandlerIsCalledAgain(t *testing.T) {
	x := newTelling(t)
	x.told.fail.Store(3)
	run := x.run(t, "1", builder.OnComplete(x.now, note{"ann"}))
	x.e.Drain()
	require.Equal(t, workflow.RunCompleted, x.status(t, run).State)
	require.Empty(t, x.rows(t), "its row was undone")
	require.Equal(t, []string{"handler now pending 1"}, x.jobs(t, store.JobFilter{Case: run.ID}))
	require.ErrorIs(t, run.Cleanup(t.Context(), x.e), engine.ErrUnfinished, "somebody is still to be told")
	x.e.Crash()
	x.e.Advance(999 * time.Millisecond)
	require.Len(t, x.all(), 1)
	x.e.Advance(time.Millisecond + 2*time.Second + 4*time.Second)
	require.Equal(t, []string{"now ann completed R-1", "now ann completed R-1", "now ann completed R-1", "now ann completed R-1"},
		x.all())
	require.Equal(t, []string{"ann"}, x.rows(t), "exactly once")
	require.Equal(t, []string{"handler now done 4"}, x.jobs(t, store.JobFilter{Case: run.ID}))
	require.NoError(t, run.Cleanup(t.Context(), x.e))
}

// A handler that never succeeds is given up after ten calls, and listed; so is one that a job calls, as its policy
// says.
func TestAHandlerThatIsGivenUpIsListed(t *testing.T) {
	x := newTelling(t)
	x.told.fail.Store(1000)
	run := x.run(t, "1", builder.OnComplete(x.now, note{"ann"}), builder.OnCompleteLater(x.later, note{"bob"}))
	x.e.Advance(24 * time.Hour)
	counts := map[string]int{}
	for _, line := range x.all() {
		counts[strings.Fields(line)[0]]++
	}
	require.Equal(t, map[string]int{"now": 10, "later": 3}, counts)
	require.ElementsMatch(t, []string{"handler now failed 10", "call later failed 3"},
		x.jobs(t, store.JobFilter{States: []state.JobState{state.JobFailed}}))
	for j, err := range store.AllJobs(t.Context(), x.e, store.JobFilter{States: []state.JobState{state.JobFailed}}) {
		require.NoError(t, err)
		require.Contains(t, j.Failure.Message, "the handler is ill")
		require.JSONEq(t, map[string]string{"now": `{"for":"ann"}`, "later": `{"for":"bob"}`}[j.Name], string(j.Input))
	}
	require.Equal(t, workflow.RunCompleted, x.status(t, run).State)
	x.e.Advance(30 * 24 * time.Hour)
	require.Equal(t, workflow.RunCompleted, x.status(t, run).State, "it stays until a person has looked")
	require.NoError(t, run.Cleanup(t.Context(), x.e))
}

// Panics, and handlers that take too long, are failures like any other: the run ends in any case.
func TestAHandlerThatPanicsOrHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	var mode atomic.Value
	mode.Store("panic")
	var calls atomic.Int32
	h := builder.Handler("h", func(_ context.Context, _ *builder.Completion[int], what string) error {
		calls.Add(1)
		switch mode.Load() {
		case "panic":
			panic("no more paper")
		case "hang":
			<-release
		}
		return nil
	})
	a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) { return n, nil }, builder.Handles(h))
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{CallbackTimeout: 2 * time.Second}, a)
	for i, m := range []string{"panic", "hang"} {
		mode.Store(m)
		calls.Store(0)
		run, err := a.Run(t.Context(), e, i, builder.OnComplete(h, "x"))
		require.NoError(t, err)
		got, err := run.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, i, got)
		e.Drain()
		mode.Store("fine")
		e.Advance(time.Minute)
		for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: run.ID, Kind: state.JobHandler}) {
			require.NoError(t, err)
			require.Equal(t, state.JobDone, j.State, m)
		}
		require.GreaterOrEqual(t, calls.Load(), int32(2))
	}
}

// asked is a context that says when somebody begins to wait for its end.
type asked struct {
	context.Context
	once sync.Once
	done func()
}

func (c *asked) Done() <-chan struct{} {
	c.once.Do(c.done)
	return c.Context.Done()
}

// When one of two handlers removes the run and the other one fails, no one is forgotten.
func TestAHandlerThatFailsAfterTheRunIsGone(t *testing.T) {
	var cleaned, failed atomic.Int32
	first := builder.Handler("first", func(ctx context.Context, c *builder.Completion[int], _ any) error {
		cleaned.Add(1)
		return c.Run().Cleanup(ctx, c)
	})
	second := builder.Handler("second", func(context.Context, *builder.Completion[int], any) error {
		if failed.Add(1) == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) { return n, nil }, builder.Handles(first, second))
	e := enginetest.New(t, a)
	_, err := a.Run(t.Context(), e, 1, builder.OnComplete(first, nil), builder.OnComplete(second, nil))
	require.NoError(t, err)
	e.Advance(time.Minute)
	require.EqualValues(t, 2, failed.Load())
	require.GreaterOrEqual(t, cleaned.Load(), int32(2))
	nothingLeft(t, e)
}

// The function of an Update is called once, also if handlers of what it ends are to be called again.
func TestAnUpdateIsNotDoneAgainForItsHandlers(t *testing.T) {
	var cleaned, failed atomic.Int32
	first := builder.Handler("first", func(ctx context.Context, c *builder.Completion[any], _ any) error {
		cleaned.Add(1)
		return c.Run().Cleanup(ctx, c)
	})
	second := builder.Handler("second", func(context.Context, *builder.Completion[any], any) error {
		if failed.Add(1) == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	b := builder.New[any]("quick", builder.Handles(first, second))
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Auto: true}), b.End())
	w := b.MustBuild()
	other := builder.MustFunc("other", func(context.Context, int) (int, error) { return 0, nil })
	e := enginetest.New(t, w, other)
	calls := 0
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		calls++
		if _, err := other.Run(t.Context(), tx, 1); err != nil {
			return err
		}
		_, err := w.Start(t.Context(), tx, nil, builder.OnComplete(first, nil), builder.OnComplete(second, nil))
		return err
	}))
	require.Equal(t, 1, calls)
	e.Advance(time.Minute)
	require.EqualValues(t, 2, failed.Load())
	require.GreaterOrEqual(t, cleaned.Load(), int32(2), "what it did first was undone")
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, "other", c.Workflow)
	}
}

// Handlers that start one another without end are stopped, and the runs for which they were called have ended
// nevertheless.
func TestHandlersThatGoOnWithoutEnd(t *testing.T) {
	var w *builder.Workflow[any]
	var h *builder.HandlerRef[any]
	h = builder.Handler("h", func(ctx context.Context, c *builder.Completion[any], _ any) error {
		_, err := w.Start(ctx, c, nil, builder.OnComplete(h, nil))
		return err
	})
	b := builder.New[any]("loop", builder.Handles(h))
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Auto: true}), b.End())
	w = b.MustBuild()
	e := enginetest.New(t, w)
	_, err := w.Start(t.Context(), e, nil, builder.OnComplete(h, nil))
	require.NoError(t, err)
	var ended int
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, state.CaseCompleted, c.State)
		ended++
	}
	require.Greater(t, ended, 2)
	require.Less(t, ended, 100)
}

// What does not fit is a problem of the definition.
func TestHandlersThatDoNotFit(t *testing.T) {
	run := func(_ context.Context, n int) (int, error) { return n, nil }
	for want, h := range map[string]builder.AnyHandler{
		"takes string, and workflow \"a\" gives int": builder.Handler("h",
			func(context.Context, *builder.Completion[string], int) error { return nil }),
		"has no function":       builder.Handler[int, int]("h", nil),
		"cannot be a payload":   builder.Handler("h", func(context.Context, *builder.Completion[int], chan int) error { return nil }),
		"bad name":              builder.Handler("bad name", func(context.Context, *builder.Completion[int], int) error { return nil }),
		"retry policy of compl": builder.LaterHandler("h", func(context.Context, builder.Ended[int], int) error { return nil }, builder.JobOptions{Retry: retry.Constant(-1, 0)}),
	} {
		_, err := builder.Func("a", run, builder.Handles(h))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "handlers_test.go")
	}
	h := builder.Handler("h", func(context.Context, *builder.Completion[int], int) error { return nil })
	_, err := builder.Func("a", run, builder.Handles(h, h))
	require.ErrorContains(t, err, "two completion handlers")
	a := builder.MustFunc("a", run, builder.Handles(h))
	b := builder.MustFunc("a", run)
	require.NotEqual(t, a.Fingerprint, b.Fingerprint, "handlers are part of the definition")
}

// Case 35, as it is here: a run whose first task cannot even begin fails when its time has come, after some tries, and
// tells of its end.
func TestARunThatCannotBegin(t *testing.T) {
	var tries int
	var lines []string
	h := builder.Handler("h", func(_ context.Context, c *builder.Completion[any], _ any) error {
		lines = append(lines, string(c.State)+" "+c.Failure.Message)
		return nil
	})
	b := builder.New[any]("w", builder.Handles(h))
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{
		Input: builder.From(func(context.Context, *activities.Activation) (any, error) {
			tries++
			return nil, errors.New("no table")
		}),
	}), b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	_, err := w.Start(t.Context(), e, nil)
	require.ErrorContains(t, err, "no table", "at once, the caller is told, and nothing is stored")
	tries = 0
	id, err := w.Start(t.Context(), e, nil, workflow.After(time.Hour), builder.OnComplete(h, nil))
	require.NoError(t, err)
	e.Advance(24 * time.Hour)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, 10, tries)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "failed")
	require.Contains(t, lines[0], "no table")
}
