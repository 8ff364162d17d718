package engine_test

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// regionCalls counts the functions that have begun and those whose contexts were canceled, by name.
type regionCalls struct {
	mu              sync.Mutex
	began, canceled map[string]int
}

// untilCanceled waits for the end of the context.
func (c *regionCalls) untilCanceled(ctx context.Context, name string) error {
	c.add(c.began, name)
	<-ctx.Done()
	c.add(c.canceled, name)
	return ctx.Err()
}

func (c *regionCalls) add(to map[string]int, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to[name]++
}

// await waits until the counts are those that are wanted.
func (c *regionCalls) await(t *testing.T, of map[string]int, want map[string]int) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return maps.Equal(want, of)
	}, time.Minute, 10*time.Millisecond, "want %v", want)
}

// busyRegion has a task "stop" that cancels tasks of every kind: several items, child cases of child cases, a step beside a sleep, a step that
// calls, one that waits for an event, and work that ignores its context and returns a result.
func busyRegion(c *regionCalls) *builder.Workflow[int] {
	b := builder.New[int]("inner")
	run := func(name string) func(context.Context, int) (int, error) {
		return func(ctx context.Context, n int) (int, error) { return n, c.untilCanceled(ctx, name) }
	}
	b.Path(b.Start(), builder.Task(b, "work", builder.Work[int, int]{Input: builder.CaseInput(b), Run: run("inner")}), b.End())
	inner := b.MustBuild()
	two := func(context.Context, *activities.Activation) ([]int, error) { return []int{1, 2}, nil }
	b = builder.New[int]("middle")
	b.Path(b.Start(), builder.Composite(b, "cases", inner, builder.Cases[int]{Items: two}), b.End())
	middle := b.MustBuild()

	b = builder.New[int]("region")
	split := builder.Task(b, "split", builder.Work[any, any]{Auto: true, Split: builder.And})
	stop := builder.Task(b, "stop", builder.Work[any, any]{})
	last := builder.Task(b, "last", builder.Work[any, any]{Auto: true, Join: builder.Or})
	b.Path(b.Start(), split, stop, last, b.End())
	var members []builder.Member
	task := func(name string, run func(context.Context, int) (int, error)) {
		m := builder.Task(b, name, builder.Work[int, int]{Items: two, Run: run, Timeout: time.Hour})
		b.Path(split, m, last)
		members = append(members, m)
	}
	task("worker", run("worker"))
	task("deaf", func(ctx context.Context, n int) (int, error) {
		_ = c.untilCanceled(ctx, "deaf")
		return n, nil
	})
	task("steps", func(ctx context.Context, n int) (int, error) {
		do := step.Go(ctx, func(ctx context.Context) (int, error) {
			return step.Do(ctx, "do", func(ctx context.Context) (int, error) { return n, c.untilCanceled(ctx, "steps") })
		})
		sleep := step.Go(ctx, func(ctx context.Context) (int, error) { return n, step.Sleep(ctx, "sleep", time.Hour) })
		return n, step.All(ctx, do, sleep)
	})
	task("calls", func(ctx context.Context, n int) (int, error) { return step.Call[int](ctx, "call", "inner", n) })
	task("waits", func(ctx context.Context, _ int) (int, error) {
		c.add(c.began, "waits")
		return step.Await[int](ctx, "never")
	})
	composite := builder.Composite(b, "composite", middle, builder.Cases[int]{Items: two})
	b.Path(split, composite, last)
	b.Cancels(stop, append(members, composite)...)
	return b.MustBuild()
}

// A region that is canceled ends all that runs in it, here or in another engine, and what waits. Late results are refused, and the case continues.
func TestARegionEndsWhatRunsInIt(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		c := &regionCalls{began: make(map[string]int), canceled: make(map[string]int)}
		w := busyRegion(c)
		e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), sqlite.File(t.TempDir()+"/a.db"), w)
		require.NoError(t, err)
		cancelsRegion(t, e, w, c)
		require.NoError(t, e.Close())
	})
	t.Run("another engine", func(t *testing.T) {
		f := newFleet(t)
		c := &regionCalls{began: make(map[string]int), canceled: make(map[string]int)}
		w := busyRegion(c)
		e := f.open(engine.Config{Workers: -1}, w)
		f.open(engine.Config{}, w)
		cancelsRegion(t, e, w, c)
	})
}

func cancelsRegion(t *testing.T, e *engine.Engine, w *builder.Workflow[int], c *regionCalls) {
	id, err := w.Start(t.Context(), e, 1)
	require.NoError(t, err)
	running := map[string]int{"worker": 2, "deaf": 2, "steps": 2, "inner": 4 + 2}
	c.await(t, c.began, map[string]int{"worker": 2, "deaf": 2, "steps": 2, "inner": 4 + 2, "waits": 2})
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id, Task: "stop"}) {
		require.NoError(t, err)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Start, nil)))
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Complete, nil)))
	}
	require.Equal(t, "completed: ", ends(t, e, id))
	c.await(t, c.canceled, running)
	for k, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.True(t, k.State.Final(), "case of %s", k.Workflow)
	}
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{}) {
		require.NoError(t, err)
		require.True(t, it.State.Final(), "item %s", it.Label())
		require.True(t, it.State == workitem.Canceled || it.Task == "split" || it.Task == "stop" || it.Task == "last", "item %s is %s", it.Label(), it.State)
	}
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{}) {
		require.NoError(t, err)
		require.False(t, j.State.Live(), "job %s of %s", j.Kind, j.Task)
	}
	require.Empty(t, stepsOf(t, e, store.StepFilter{States: []workitem.StepState{workitem.StepWaiting}}))
	require.NoError(t, integrity.Check(t.Context(), e))
}
