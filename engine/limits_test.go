package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// callLog notes when a function was called, and how many of them ran at a time.
type callLog struct {
	mu            sync.Mutex
	at            []time.Time
	running, peak int
}

func (c *callLog) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Now())
	c.running++
	c.peak = max(c.peak, c.running)
}

func (c *callLog) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

// clear forgets all calls: those that a killed engine left behind are over.
func (c *callLog) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.running, c.peak = nil, 0, 0
}

// now is how many calls there are.
func (c *callLog) now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// highest is how many calls there were at a time, at most.
func (c *callLog) highest() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peak
}

// most is how many of the calls any window of that length has seen.
func (c *callLog) most(per time.Duration) (most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.at, time.Time.Compare)
	for i, first := range c.at {
		n := 0
		for _, at := range c.at[i:] {
			if at.Before(first.Add(per)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// inBubble runs a test with an engine in a bubble, and checks the store at the end.
func inBubble(t *testing.T, cfg engine.Config, f func(t *testing.T, e *engine.Engine), workflows ...engine.Workflow) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Logger = slog.New(slog.DiscardHandler)
		e, err := cfg.Open(t.Context(), sqlite.Memory(), workflows...)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond) // not when the mailbox is looked at: it would wait for a lock, which no bubble sees
		f(t, e)
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}

// busyFor is a function that takes a second and notes its calls.
func busyFor(c *callLog, d time.Duration) func(context.Context, int) (int, error) {
	return func(_ context.Context, n int) (int, error) {
		c.begin()
		defer c.end()
		<-time.After(d)
		return n, nil
	}
}

func startAll[In, Out any](t *testing.T, e *engine.Engine, f *builder.FuncRef[In, Out], inputs ...In) (runs []builder.Run[Out]) {
	t.Helper()
	for _, in := range inputs {
		r, err := f.Run(t.Context(), e, in)
		require.NoError(t, err)
		runs = append(runs, r)
	}
	return runs
}

func endAll[Out any](t *testing.T, e *engine.Engine, runs []builder.Run[Out]) {
	t.Helper()
	for _, r := range runs {
		_, err := r.Result(t.Context(), e)
		require.NoError(t, err)
	}
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Jobs that wait for slots hold no worker: with three workers, of which two have slots, the third does other work of the same queue.
func TestAJobThatWaitsForALimitHoldsNoWorker(t *testing.T) {
	var narrow, free callLog
	limited := builder.MustFunc("limited", busyFor(&narrow, time.Second), builder.Limits(builder.Takes(limit.Resource("db", 2), 0)))
	other := builder.MustFunc("other", busyFor(&free, time.Second))
	inBubble(t, engine.Config{Workers: 3}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, limited, numbers(10)...)
		startedLater := startAll(t, e, other, numbers(5)...)
		endAll(t, e, startedLater)
		require.Equal(t, 5*time.Second, time.Since(begin))
		endAll(t, e, runs)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.Equal(t, 2, narrow.peak)
	}, limited, other)
}

// A rate bounds every window, and takes all that it may.
func TestARateBoundsTheAttemptsOfAFunction(t *testing.T) {
	var c callLog
	f := builder.MustFunc("f", busyFor(&c, 10*time.Millisecond),
		builder.Limits(builder.Takes(limit.Calls(10, time.Minute), 0), builder.Takes(limit.Resource("slots", 3), 0)))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		endAll(t, e, startAll(t, e, f, numbers(35)...))
		require.Equal(t, 10, c.most(time.Minute))
		require.Equal(t, 3, c.peak)
		require.Less(t, time.Since(begin), 3*time.Minute+time.Second)
	}, f)
}

type mail struct{ Customer string }

// Each customer has limits of their own, and one who waits holds up no one else.
func TestALimitByKey(t *testing.T) {
	byCustomer := make(map[string]*callLog)
	for i := range 20 {
		byCustomer[fmt.Sprint(i)] = new(callLog)
	}
	f := builder.MustFunc("mail", func(ctx context.Context, m mail) (int, error) {
		return busyFor(byCustomer[m.Customer], time.Second)(ctx, 0)
	}, builder.Limits(builder.TakesBy(limit.Resource("customer", 2), 1, func(m mail) string { return m.Customer })))
	inBubble(t, engine.Config{Workers: 100}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		var mails []mail
		for range 6 {
			for name := range byCustomer {
				mails = append(mails, mail{name})
			}
		}
		endAll(t, e, startAll(t, e, f, mails...))
		require.Equal(t, 3*time.Second, time.Since(begin))
		for _, c := range byCustomer {
			require.Equal(t, 2, c.peak)
		}
	}, f)
}

// What an attempt holds is free while the function waits for its next attempt, and while it sleeps in a step.
func TestLimitsAreGivenBackBetweenAttemptsAndInSleep(t *testing.T) {
	slot := builder.Limits(builder.Takes(limit.Resource("one", 1), 0))
	broken := builder.MustFunc("broken", func(context.Context, int) (int, error) { return 0, errors.New("no") }, slot,
		builder.Retry(func(p *retry.Policy) { *p = retry.Exponential(2, time.Hour) }))
	sleeper := builder.MustFunc("sleeper", func(ctx context.Context, n int) (int, error) {
		return n, step.Sleep(ctx, "nap", time.Hour)
	}, slot)
	quick := builder.MustFunc("quick", echo, slot)
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		failing := startAll(t, e, broken, 1)
		sleeping := startAll(t, e, sleeper, 1)
		require.NoError(t, e.Drain(t.Context()))
		endAll(t, e, startAll(t, e, quick, numbers(5)...))
		require.Less(t, time.Since(begin), time.Minute)
		endAll(t, e, sleeping)
		_, err := failing[0].Result(t.Context(), e)
		require.ErrorContains(t, err, "no")
		require.Equal(t, time.Hour, time.Since(begin).Round(time.Minute))
	}, broken, sleeper, quick)
}

// An open breaker delays jobs and fails none: not one attempt is made while it is open.
func TestAnOpenBreakerDelaysJobs(t *testing.T) {
	var c callLog
	down := time.Time{}
	f := builder.MustFunc("f", func(context.Context, int) (int, error) {
		c.begin()
		defer c.end()
		if time.Now().Before(down) {
			return 0, errors.New("down")
		}
		return 0, nil
	}, builder.Limits(builder.Takes(limit.Breaker("model", 0.5, time.Minute, time.Hour), 0)),
		builder.Retry(func(p *retry.Policy) { *p = retry.Exponential(5, time.Second) }))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		down = begin.Add(30 * time.Minute)
		endAll(t, e, startAll(t, e, f, numbers(30)...))
		require.Equal(t, time.Hour, time.Since(begin).Round(time.Minute))
		require.LessOrEqual(t, len(c.at), 30+12, "10 results open it; the probe closes it")
	}, f)
}

// What a job needs and what cannot be is said when the workflow is built, when the engine is opened, or as the failure of the job.
func TestLimitsThatCannotBe(t *testing.T) {
	ctx := t.Context()
	_, err := builder.Func("f", echo, builder.Limits(builder.Takes(limit.Resource("db", 2), 3), builder.Takes(limit.Resource("x", -1), 0),
		builder.TakesBy(limit.Resource("y", 1), 0, func(s string) string { return s })))
	require.ErrorContains(t, err, "3 of 2 slots of db are more than it admits at once: take at most 2, or raise it")
	require.ErrorContains(t, err, "N is -1")
	require.ErrorContains(t, err, `the function for "y" takes string, and the input is int`)

	one := builder.MustFunc("one", echo, builder.Limits(builder.Takes(limit.Resource("db", 2), 0)))
	two := builder.MustFunc("two", echo, builder.Limits(builder.Takes(limit.Resource("db", 3), 0)))
	_, err = engine.Open(ctx, sqlite.Memory(), one, two)
	require.ErrorContains(t, err, `limit "db" is 2 slots of db for task run of one, and 3 slots of db for task run of two`)

	tokens := builder.MustFunc("tokens", echo, builder.Limits(
		builder.TakesOf(limit.Rate("tokens", 100, time.Minute, limit.SlidingWindow), func(n int) int64 { return int64(n) }),
		builder.TakesBy(limit.Resource("db", 1), 0, func(n int) string { return []string{"a", "b"}[n%3] })))
	e, err := engine.Open(ctx, sqlite.Memory(), tokens)
	require.NoError(t, err)
	defer e.Close()
	for input, text := range map[int]string{102: "the job takes 102 of 100 of rate tokens", 5: "panicked: runtime error: index out of range"} {
		r, err := tokens.Run(ctx, e, input)
		require.NoError(t, err)
		_, err = r.Result(ctx, e)
		require.ErrorContains(t, err, text)
		status, err := r.Status(ctx, e)
		require.NoError(t, err)
		require.Equal(t, 1, status.Attempt, "it is not tried again")
	}
	require.NoError(t, integrity.Check(ctx, e))
}

// Why says what a job waits for, until when, and behind whom.
func TestWhyNamesTheLimit(t *testing.T) {
	f := builder.MustFunc("f", echo, builder.Limits(
		builder.TakesBy(limit.Rate("openai", 3, 10*time.Second, limit.SlidingWindow), 3, func(int) string { return "acme" })))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, numbers(3)...)
		require.NoError(t, e.Drain(t.Context()))
		<-time.After(6 * time.Second)
		for i, text := range map[int]string{
			1: "waits for 3 of rate openai, free in 4s (of acme), since 6s",
			2: "waits for 3 of rate openai, free in 4s (of acme) for the other that goes first, since 6s",
		} {
			answer, err := e.Why(t.Context(), runs[i].ID)
			require.NoError(t, err)
			require.Contains(t, answer.String(), text)
		}
		endAll(t, e, runs)
	}, f)
}

// Jobs that waited for a limit when the engine was closed wait for it when it is opened again; one that is canceled while it waits
// holds up no one.
func TestJobsThatWaitForALimitOverARestart(t *testing.T) {
	var c callLog
	f := builder.MustFunc("f", busyFor(&c, time.Second), builder.Limits(builder.Takes(limit.Resource("one", 1), 0)))
	synctest.Test(t, func(t *testing.T) {
		path := sqlite.File(t.TempDir() + "/limits.db")
		cfg := engine.Config{Logger: slog.New(slog.DiscardHandler)}
		e, err := cfg.Open(t.Context(), path, f)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		runs := startAll(t, e, f, numbers(8)...)
		<-time.After(1500 * time.Millisecond)
		require.NoError(t, e.Kill())
		<-time.After(time.Minute)

		c.clear()
		begin := time.Now()
		e, err = cfg.Open(t.Context(), path, f)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		_, err = runs[4].Cancel(t.Context(), e, nil)
		require.NoError(t, err)
		endAll(t, e, slices.Concat(runs[:4], runs[5:]))
		require.Equal(t, 1, c.highest())
		require.Equal(t, 6*time.Second, time.Since(begin).Round(time.Second))
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}
