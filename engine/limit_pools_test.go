package engine_test

import (
	"context"
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
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// usedKeys notes which key each call took.
type usedKeys struct {
	mu   sync.Mutex
	list []string
}

func (u *usedKeys) note(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, key)
}

// take returns the keys since the last call, sorted.
func (u *usedKeys) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := u.list
	u.list = nil
	slices.Sort(list)
	return list
}

// A function takes of any of three keys, and learns which. A key that is paused, or has another number, is respected over restarts, and why
// names the key that is the first to have room.
func TestAFunctionTakesOfAnyKey(t *testing.T) {
	var used usedKeys
	calls := limit.Rate("calls", 2, time.Minute, limit.SlidingWindow)
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		used.note(limit.KeyOf(ctx, "calls"))
		return n, nil
	}, builder.Limits(builder.Takes(calls, 1).AnyOf("one", "two", "three")))
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, numbers(8)...)
	require.Equal(t, []string{"one", "one", "three", "three", "two", "two"}, used.take())
	e.Advance(20 * time.Second)
	says(t, e, runs[7].ID, "item run.1.1 waits for 1 of rate calls, free in 40s (of one, two or three; one is the first) for the other that goes first")

	set := func(key string, n int64) {
		_, err := e.Do(t.Context(), workflow.SetLimitOf("calls", key, n))
		require.NoError(t, err)
		e.Drain()
	}
	set("one", 0)
	set("two", 3)
	require.Equal(t, []string{"two"}, used.take(), "it was given more")
	says(t, e, runs[7].ID, "free in 40s (of one, two or three; two is the first)")
	e.Crash(f) // what is admitted is forgotten, as the limit is not shared
	runAll(t, e, f, numbers(4)...)
	require.Equal(t, []string{"three", "three", "two", "two", "two"}, used.take())
	set("two", 0)
	set("three", 0)
	e.Advance(time.Hour)
	r := runAll(t, e, f, 1)[0]
	require.Empty(t, used.take())
	says(t, e, r.ID, "waits for 1 of rate calls, which is paused (of one, two or three)")
	set("one", 2)
	require.Equal(t, []string{"one"}, used.take())
}

// Limits with the same keys are taken of the same one, and given back to it: nothing is held in the end.
func TestLimitsOfAPoolGoTogether(t *testing.T) {
	keys := []string{"one", "two", "three"}
	slots, calls := limit.Resource("slots", 2), limit.Calls(5, time.Minute)
	of := map[string]*callLog{"one": {}, "two": {}, "three": {}}
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		key := limit.KeyOf(ctx, "slots")
		if other := limit.KeyOf(ctx, calls.Name); other != key {
			return 0, fmt.Errorf("slots of %s, and calls of %s", key, other)
		}
		return busyFor(of[key], 7*time.Second)(ctx, n)
	}, builder.Limits(builder.Takes(slots, 1).AnyOf(keys...), builder.Takes(calls, 1).AnyOf(keys...)))
	inBubble(t, engine.Config{Workers: 20}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		endAll(t, e, startAll(t, e, f, numbers(50)...))
		require.Less(t, time.Since(begin), 4*time.Minute, "50 calls, of which 15 may begin in a minute")
		for _, key := range keys {
			require.Equal(t, 2, of[key].highest(), key)
			require.LessOrEqual(t, of[key].most(time.Minute), 5, key)
			require.GreaterOrEqual(t, len(of[key].at), 15, "all keys are used")
		}
		synctest.Wait() // a result is known before its worker is free
		result, err := e.Do(t.Context(), workflow.Limits())
		require.NoError(t, err)
		for _, l := range result.Limits {
			require.Zero(t, l.Waiting, l.Limit.Name)
			if l.Limit.Name == "slots" {
				require.Zero(t, l.Used)
			}
		}
	}, f)
}

// A step takes of any key too: it waits without a worker, over a restart, and learns which it was.
func TestAStepTakesOfAnyKey(t *testing.T) {
	slots := limit.Resource("slots", 1)
	of := map[string]*callLog{"one": {}, "two": {}}
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		if key := limit.KeyOf(ctx, "slots"); key != "" {
			return 0, fmt.Errorf("the function has the slot of %s", key)
		}
		return step.Do(ctx, "ask", func(ctx context.Context) (int, error) {
			return busyFor(of[limit.KeyOf(ctx, "slots")], time.Minute)(ctx, n)
		}, step.Limits(step.Takes(slots, 0).AnyOf("one", "two")))
	}, builder.Limits(builder.TakenBySteps(slots)))
	free := builder.MustFunc("free", busyFor(new(callLog), time.Second))
	synctest.Test(t, func(t *testing.T) {
		path, cfg := sqlite.File(t.TempDir()+"/limits.db"), engine.Config{Logger: slog.New(slog.DiscardHandler), Workers: 3}
		e, err := cfg.Open(t.Context(), path, f, free)
		require.NoError(t, err)
		begin := time.Now()
		runs := startAll(t, e, f, numbers(5)...)
		endAll(t, e, startAll(t, e, free, 1))
		require.Less(t, time.Since(begin), 2*time.Second, "who waits holds no worker")
		says(t, e, runs[4].ID, "step ask of run.1.1 waits for 1 of slots slots, not enough are free (of one or two), 2 others go first")
		<-time.After(10 * time.Second)
		require.NoError(t, e.Kill())
		synctest.Wait()
		of["one"].clear()
		of["two"].clear()
		e, err = cfg.Open(t.Context(), path, f, free)
		require.NoError(t, err)
		endAll(t, e, runs)
		require.Equal(t, 1, of["one"].highest())
		require.Equal(t, 1, of["two"].highest())
		require.Equal(t, 5, len(of["one"].at)+len(of["two"].at))
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}

// Engines on one PostgreSQL schema share the keys of a pool, and those of one that dies come back.
func TestEnginesShareAPool(t *testing.T) {
	f := newFleet(t)
	slots := limit.Resource("slots", 2).Shared()
	of := map[string]*callLog{"one": {}, "two": {}, "three": {}}
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
			return busyFor(of[limit.KeyOf(ctx, "slots")], 20*time.Millisecond)(ctx, n)
		}, builder.Limits(builder.Takes(slots, 0).AnyOf("one", "two", "three")))
	}
	one, two := w(), w()
	a, b := f.open(engine.Config{Workers: 8}, one), f.open(engine.Config{Workers: 8}, two)
	runs := append(startAll(t, a, one, numbers(20)...), startAll(t, b, two, numbers(20)...)...)
	endAll(t, a, runs)
	for key, c := range of {
		require.LessOrEqual(t, c.highest(), 2, key)
		require.NotEmpty(t, c.at, key)
	}
}

func TestAPoolThatCannotBe(t *testing.T) {
	one := limit.Resource("one", 1)
	nothing := func(_ context.Context, n int) (int, error) { return n, nil }
	for want, needs := range map[string][]builder.Need{
		"it is taken of any of no keys":                  {builder.Takes(one, 1).AnyOf()},
		"one of its keys is empty":                       {builder.Takes(one, 1).AnyOf("a", "")},
		`it is taken of the key "a" twice`:               {builder.Takes(one, 1).AnyOf("a", "b", "a")},
		"use AnyOf of package step":                      {builder.TakenBySteps(one).AnyOf("a")},
		"is taken of a key of the input and of any of":   {builder.TakesBy(one, 1, func(int) string { return "" }).AnyOf("a")},
		"2 of 1 slots of one are more than it admits at": {builder.Takes(one, 2).AnyOf("a", "b")},
	} {
		_, err := builder.Func("f", nothing, builder.Limits(needs...))
		require.ErrorContains(t, err, want)
	}
	_, err := builder.Batch("f", 2, time.Second, new(batchLog).doubled, builder.Limits(builder.Takes(one, 1).AnyOf("a", "b")))
	require.ErrorContains(t, err, "each item of a batch might have another one")

	for want, take := range map[string]step.Take{
		"it is taken of any of no keys":        step.Takes(one, 1).AnyOf(),
		"is taken of the key \"x\" and of any": step.TakesBy(one, 1, "x").AnyOf("a"),
	} {
		f := builder.MustFunc("f", asking(new(callLog), 0, take), builder.Limits(builder.TakenBySteps(one)))
		e := enginetest.New(t, f)
		s, err := runAll(t, e, f, 1)[0].Status(t.Context(), e)
		require.NoError(t, err)
		require.ErrorContains(t, s.Failure, want)
	}
}
