package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// beginnings notes the inputs of functions in the order in which they begin.
type beginnings struct {
	mu  sync.Mutex
	all []string
}

// work takes a second.
func (b *beginnings) work(_ context.Context, in string) (string, error) {
	b.mu.Lock()
	b.all = append(b.all, in)
	b.mu.Unlock()
	<-time.After(time.Second)
	return in, nil
}

// note takes no time.
func (b *beginnings) note(_ context.Context, in string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, in)
	return in, nil
}

// take returns what has begun since the last time.
func (b *beginnings) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := strings.Join(b.all, " ")
	b.all = nil
	return all
}

// tenant is the key of an input such as a1.
func tenant(in string) string { return in[:1] }

// jobsOf are the inputs of a tenant.
func jobsOf(tenant string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(tenant, i+1))
	}
	return list
}

// A tenant who starts many runs does not have the others wait behind them; why says where each stands.
func TestAQueueTakesTurnsBetweenKeys(t *testing.T) {
	var b beginnings
	f := builder.MustFunc("f", b.work, builder.FairBy(tenant))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, jobsOf("a", 6)...)
		synctest.Wait()
		says(t, e, runs[5].ID, "no other key has jobs that wait, and 4 of its own key go first")
		others := startAll(t, e, f, slices.Concat(jobsOf("b", 3), jobsOf("c", 1))...)
		synctest.Wait()
		says(t, e, runs[5].ID, "the queue takes turns between 3 keys, and 4 of its own key go first")
		says(t, e, others[0].ID, "waits for a worker of the default queue, since 0s; the queue takes turns between 3 keys")
		result, err := e.Do(t.Context(), workflow.Queues())
		require.NoError(t, err)
		require.Equal(t, 3, result.Queues[0].Keys)
		endAll(t, e, append(runs, others...))
		require.Equal(t, "a1 a2 b1 c1 a3 b2 a4 b3 a5 a6", b.take())
		result, err = e.Do(t.Context(), workflow.Queues())
		require.NoError(t, err)
		require.Zero(t, result.Queues[0].Keys, "no key is kept")
	}, f)
}

// Who only reads the database knows that there are turns, and does not count those that are due before.
func TestReaderKnowsThatQueueIsFair(t *testing.T) {
	var b beginnings
	f := builder.MustFunc("f", b.work, builder.FairBy(tenant))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, jobsOf("a", 3)...)
		synctest.Wait()
		require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
			answer, err := why.Read(t.Context(), r, runs[2].ID, time.Now(), why.Here{})
			require.NoError(t, err)
			require.Contains(t, answer.String(), "the queue takes turns between keys of the input")
			return nil
		}))
		endAll(t, e, runs)
	}, f)
}

// A higher priority goes first; turns are between jobs of the same one, so those of a key with another priority take none of its turns.
func TestTurnsAreOfOnePriority(t *testing.T) {
	var b beginnings
	f := builder.MustFunc("f", b.work, builder.FairBy(tenant))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, jobsOf("a", 3)...)
		runs = append(runs, startAll(t, e, f, "b1")...)
		for _, in := range []string{"a8", "a9", "y1"} {
			r, err := f.Run(t.Context(), e, in, workflow.Priority(1))
			require.NoError(t, err)
			runs = append(runs, r)
		}
		endAll(t, e, runs)
		require.Equal(t, "a1 a8 y1 a9 a2 b1 a3", b.take())
	}, f)
}

// With aging, a job counts as old as its round: low priorities come, and keys take turns among them.
func TestTurnsWithAging(t *testing.T) {
	var b beginnings
	f := builder.MustFunc("f", b.work, builder.FairBy(tenant))
	inBubble(t, engine.Config{Workers: 1, Aging: 2 * time.Second}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, jobsOf("a", 5)...)
		<-time.After(1500 * time.Millisecond)
		runs = append(runs, startAll(t, e, f, jobsOf("b", 2)...)...)
		for n := range 8 {
			r, err := f.Run(t.Context(), e, fmt.Sprint("x", n), workflow.Priority(1))
			require.NoError(t, err)
			runs = append(runs, r)
			<-time.After(500 * time.Millisecond)
		}
		endAll(t, e, runs)
		order := strings.Fields(b.take())
		at := func(in string) int { return slices.Index(order, in) }
		require.Less(t, at("b1"), at("a5"), "%v", order)
		require.Less(t, at("a5"), at("x7"), "%v: it has waited", order)
	}, f)
}

// The line of a limit goes by turns too, though all jobs have left the queue for it.
func TestALimitTakesTurnsBetweenKeys(t *testing.T) {
	for _, l := range []limit.Limit{limit.Resource("slots", 1), limit.Calls(1, time.Second), limit.Calls(1, 6*time.Second).Shared()} {
		var b beginnings
		f := builder.MustFunc("f", b.work, builder.FairBy(tenant), builder.Limits(builder.Takes(l, 1)))
		inBubble(t, engine.Config{Workers: 32}, func(t *testing.T, e *engine.Engine) {
			runs := startAll(t, e, f, jobsOf("a", 5)...)
			synctest.Wait()
			runs = append(runs, startAll(t, e, f, slices.Concat(jobsOf("b", 2), jobsOf("c", 1))...)...)
			endAll(t, e, runs)
			require.Equal(t, "a1 a2 b1 c1 a3 b2 a4 a5", b.take(), l)
		}, f)
	}
}

// Steps that wait for a limit take turns as their functions do.
func TestStepsTakeTurnsBetweenKeys(t *testing.T) {
	var b beginnings
	l := limit.Resource("slots", 1)
	work := func(ctx context.Context, in string) (string, error) {
		return step.Do(ctx, "work", func(ctx context.Context) (string, error) { return b.work(ctx, in) }, step.Limits(step.Takes(l, 1)))
	}
	both := func(ctx context.Context, in string) (string, error) { // the other branch keeps the worker while the step waits
		first := step.Go(ctx, func(ctx context.Context) (string, error) { return work(ctx, in) })
		second := step.Go(ctx, func(ctx context.Context) (string, error) {
			return step.Do(ctx, "busy", func(context.Context) (string, error) { <-time.After(time.Minute); return in, nil })
		})
		return in, step.All(ctx, first, second)
	}
	for _, run := range []func(context.Context, string) (string, error){work, both} {
		f := builder.MustFunc("f", run, builder.FairBy(tenant), builder.Limits(builder.TakenBySteps(l)))
		inBubble(t, engine.Config{Workers: 32}, func(t *testing.T, e *engine.Engine) {
			runs := startAll(t, e, f, jobsOf("a", 6)...)
			<-time.After(500 * time.Millisecond) // they wait in their steps
			runs = append(runs, startAll(t, e, f, "b1")...)
			endAll(t, e, runs)
			order := strings.Fields(b.take())
			require.Equal(t, 2, slices.Index(order, "b1"), "%v", order) // of the first six, workers decide who waits first
		}, f)
	}
}

// After a restart keys are found again, though nothing of them is stored: what is due is read ahead of what begins.
func TestTurnsGoOnAfterARestart(t *testing.T) {
	for _, kill := range []bool{false, true} {
		var b beginnings
		f := builder.MustFunc("f", b.work, builder.FairBy(tenant))
		synctest.Test(t, func(t *testing.T) {
			path, cfg := sqlite.File(t.TempDir()+"/fair.db"), engine.Config{Workers: 1, Logger: slog.New(slog.DiscardHandler)}
			e, err := cfg.Open(t.Context(), path, f)
			require.NoError(t, err)
			<-time.After(3 * time.Millisecond)
			_, err = e.Do(t.Context(), workflow.PauseQueue(""))
			require.NoError(t, err)
			runs := startAll(t, e, f, slices.Concat(jobsOf("a", 200), jobsOf("b", 2), jobsOf("c", 1))...)
			if kill {
				require.NoError(t, e.Kill())
			} else {
				require.NoError(t, e.Close())
			}
			e, err = cfg.Open(t.Context(), path, f)
			require.NoError(t, err)
			<-time.After(3 * time.Millisecond)
			_, err = e.Do(t.Context(), workflow.ResumeQueue(""))
			require.NoError(t, err)
			endAll(t, e, runs)
			order := strings.Fields(b.take())
			require.Len(t, order, 203)
			require.Less(t, slices.Index(order, "b1"), 10, "%v", order)
			require.Less(t, slices.Index(order, "b2"), 12, "%v", order)
			require.Less(t, slices.Index(order, "c1"), 12, "%v", order)
			require.NoError(t, integrity.Check(t.Context(), e))
			require.NoError(t, e.Close())
		})
	}
}

// A tenant whose runs are all canceled has no turns behind.
func TestCanceledRunsTakeNoTurns(t *testing.T) {
	var b beginnings
	f := builder.MustFunc("f", b.work, builder.FairBy(tenant))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, jobsOf("b", 20)...)
		wrong := startAll(t, e, f, jobsOf("a", 50)...)
		for _, r := range wrong {
			_, err := r.Cancel(t.Context(), e, nil)
			require.NoError(t, err)
		}
		runs = append(runs, startAll(t, e, f, "a99")...)
		endAll(t, e, runs)
		require.LessOrEqual(t, slices.Index(strings.Fields(b.take()), "a99"), 2)
	}, f)
}

// Items of a task and jobs of callbacks take turns in one queue, with those of functions without a key as one more.
func TestTasksAndJobsTakeTurns(t *testing.T) {
	var b beginnings
	w := builder.New[string]("w")
	run := builder.Task(w, "run", builder.Work[string, string]{Input: builder.CaseInput(w), Run: b.work, FairBy: tenant})
	plain := builder.Job(w, "plain", func(ctx context.Context, in string) error { _, err := b.work(ctx, in); return err }, builder.JobOptions{})
	fair := builder.Job(w, "fair", func(ctx context.Context, in string) error { _, err := b.work(ctx, in); return err },
		builder.JobOptions{FairBy: builder.FairKeyOf(tenant)})
	w.OnStarted(func(_ context.Context, c *activities.Case) error {
		if in, err := builder.CaseInputOf[string](c.Case()); err != nil || in != "z1" {
			return err
		}
		for _, in := range jobsOf("p", 20) {
			if _, err := plain.Detached(c, 0, in); err != nil {
				return err
			}
		}
		for _, in := range append(jobsOf("x", 20), "y1") {
			if _, err := fair.Detached(c, 0, in); err != nil {
				return err
			}
		}
		return nil
	})
	w.Path(w.Start(), run, w.End())
	flow, err := w.Build()
	require.NoError(t, err)
	inBubble(t, engine.Config{Queues: map[string]int{"": 1}}, func(t *testing.T, e *engine.Engine) {
		_, err := e.Do(t.Context(), workflow.PauseQueue(""))
		require.NoError(t, err)
		for _, in := range append(jobsOf("z", 20), "v1") {
			_, err = flow.Start(t.Context(), e, in)
			require.NoError(t, err)
		}
		_, err = e.Do(t.Context(), workflow.ResumeQueue(""))
		require.NoError(t, err)
		<-time.After(100 * time.Second)
		order := strings.Fields(b.take())
		require.Len(t, order, 62)
		for _, in := range []string{"p1", "x1", "y1", "z1", "v1"} {
			require.LessOrEqual(t, slices.Index(order, in), 8, "%s waits for at most two jobs of each other key: %v", in, order)
		}
	}, flow)
}

// A key that cannot be made is no key.
func TestAKeyThatPanics(t *testing.T) {
	f := builder.MustFunc("f", func(_ context.Context, n int) (int, error) { return n, nil }, builder.FairBy(func(n int) string { panic("no key") }))
	e := enginetest.New(t, f)
	for _, r := range runAll(t, e, f, 1, 2) {
		_, err := r.Result(t.Context(), e)
		require.NoError(t, err)
	}
}

// In a fleet, the job of a tenant stays with the engine that starts it if no other of his waits there, so that it has its turn though
// thousands of another tenant are left for any engine before it.
func TestTurnsInAFleet(t *testing.T) {
	f := newFleet(t)
	var mu sync.Mutex
	var order []string
	started := make(chan struct{}) // closed once all are there
	w := func() *builder.FuncRef[string, string] {
		return builder.MustFunc("f", func(_ context.Context, in string) (string, error) {
			mu.Lock()
			order = append(order, in)
			mu.Unlock()
			<-started
			<-time.After(10 * time.Millisecond)
			return in, nil
		}, builder.FairBy(tenant))
	}
	one, two := w(), w()
	a := f.open(engine.Config{Workers: 1}, one)
	f.open(engine.Config{Workers: 1}, two)
	require.Eventually(t, func() bool { return f.sql("SELECT count(*) FROM tasq.processes WHERE state = 'live'") == 2 }, 10*time.Second, 10*time.Millisecond)
	runs := startAll(t, a, one, jobsOf("a", testsize.Pick(80, 150, 150))...)
	runs = append(runs, startAll(t, a, one, "b1", "c1")...)
	close(started)
	endAll(t, a, runs)
	for _, in := range []string{"b1", "c1"} {
		require.Less(t, slices.Index(order, in), 25, "%s of %v", in, order)
	}
}
