package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// A rate that is kept in the store is not exceeded over restarts, however the engine ends.
func TestASharedRateHoldsOverARestart(t *testing.T) {
	overRestarts(t, func(c *callLog, calls limit.Limit) *builder.FuncRef[int, int] {
		return builder.MustFunc("f", busyFor(c, time.Millisecond), builder.Limits(builder.Takes(calls, 0)))
	})
}

// overRestarts has 35 calls take of a shared rate of 10 a minute while the engine is closed, or killed, three times, and requires that the
// rate holds and that all end in time.
func overRestarts(t *testing.T, function func(*callLog, limit.Limit) *builder.FuncRef[int, int]) {
	for _, kill := range []bool{false, true} {
		var c callLog
		f := function(&c, limit.Calls(10, time.Minute).Shared())
		synctest.Test(t, func(t *testing.T) {
			var runs []builder.Run[int]
			begin := time.Now()
			oneAfterTheOther(t, kill, 4, 25*time.Second, f, func(e *engine.Engine) {
				runs = startAll(t, e, f, numbers(35)...)
			}, func(e *engine.Engine) { endAll(t, e, runs) })
			require.Equal(t, 10, c.most(time.Minute))
			require.GreaterOrEqual(t, len(c.at), 35)
			require.Less(t, time.Since(begin), 4*time.Minute+10*time.Second)
		})
	}
}

// oneAfterTheOther opens so many engines on a file in a bubble. The first one starts runs, and in the last one they end; those before it are closed, or
// killed, after about the time given. The database is checked at the end.
func oneAfterTheOther(t *testing.T, kill bool, engines int, each time.Duration, w engine.Workflow, start, end func(*engine.Engine)) {
	t.Helper()
	path := sqlite.File(t.TempDir() + "/restarts.db")
	for i := range engines {
		e, err := quietConfig().Open(t.Context(), path, w)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		if i == 0 {
			start(e)
		}
		if i < engines-1 {
			<-time.After(each + time.Duration(i)*777*time.Millisecond)
		} else {
			end(e)
			require.NoError(t, integrity.Check(t.Context(), e))
		}
		if kill && i < engines-1 {
			require.NoError(t, e.Kill())
		} else {
			require.NoError(t, e.Close())
		}
	}
}

// A job that waits for a shared rate says so, and holds no worker.
func TestAJobThatWaitsForASharedRate(t *testing.T) {
	var c, free callLog
	f := builder.MustFunc("f", busyFor(&c, time.Second), builder.Limits(builder.Takes(limit.Calls(1, time.Hour).Shared(), 0)))
	other := builder.MustFunc("other", busyFor(&free, time.Second))
	inBubble(t, engine.Config{Workers: 1}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, numbers(3)...)
		<-time.After(10 * time.Second)
		answer, err := e.Why(t.Context(), runs[1].ID)
		require.NoError(t, err)
		require.Contains(t, answer.String(), "waits for 1 of rate calls, free in 1h1m")
		endAll(t, e, startAll(t, e, other, 1))
		require.Len(t, c.at, 1)
	}, f, other)
}

// Engines of one database share rates. What begins when is noted by functions, which a busy machine delays; so the rate is looked at over
// the whole time, and each window of it by the tests of admission.
func TestEnginesShareARate(t *testing.T) {
	begin := time.Now()
	sharedBy(t, time.Millisecond, 30, limit.Calls(20, time.Second))
	require.GreaterOrEqual(t, time.Since(begin), 2*time.Second, "20 in the first second, and in each of the others")
}

// Engines of one database share slots.
func TestEnginesShareSlots(t *testing.T) {
	require.LessOrEqual(t, sharedBy(t, 50*time.Millisecond, 15, limit.Resource("slots", 3)).peak, 3)
}

// Engines of one database share the slots of each key, and not those of all.
func TestEnginesShareTheSlotsOfAKey(t *testing.T) {
	f := newFleet(t)
	of := []*callLog{{}, {}, {}}
	customer := func(n int) string { return fmt.Sprint("customer ", n%len(of)) }
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
			return busyFor(of[n%len(of)], 20*time.Millisecond)(ctx, n)
		}, builder.Limits(builder.TakesBy(limit.Resource("customers", 2).Shared(), 1, customer)))
	}
	one, two := w(), w()
	a, b := f.open(engine.Config{Workers: 8}, one), f.open(engine.Config{Workers: 8}, two)
	endAll(t, a, slices.Concat(startAll(t, a, one, numbers(30)...), startAll(t, b, two, numbers(30)...)))
	for _, c := range of {
		require.LessOrEqual(t, c.highest(), 2)
		require.Len(t, c.at, 20)
	}
}

// Engines of one database share the rate of each key: it is taken by both together, over the whole time, as in TestEnginesShareARate.
func TestEnginesShareTheRateOfAKey(t *testing.T) {
	f := newFleet(t)
	of := map[string]*callLog{"busy": {}, "quiet": {}}
	customer := func(n int) string {
		if n == 0 {
			return "quiet"
		}
		return "busy"
	}
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
			return busyFor(of[customer(n)], time.Millisecond)(ctx, n)
		}, builder.Limits(builder.TakesBy(limit.Calls(10, time.Hour).Shared(), 0, customer)))
	}
	one, two := w(), w()
	a, b := f.open(engine.Config{Workers: 8}, one), f.open(engine.Config{Workers: 8}, two)
	busy := slices.Concat(startAll(t, a, one, 1, 1, 1, 1, 1, 1, 1, 1), startAll(t, b, two, 1, 1, 1, 1, 1, 1, 1, 1))
	endAll(t, a, startAll(t, a, one, 0))
	endAll(t, b, startAll(t, b, two, 0))
	ended := func() (n int) {
		for _, r := range busy {
			s, err := r.Status(t.Context(), a)
			require.NoError(t, err)
			if s.State.Final() {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return ended() == 10 }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, a.Drain(t.Context()))
	require.NoError(t, b.Drain(t.Context()))
	require.Equal(t, 10, ended(), "of 16, which both engines have")
	require.Len(t, of["quiet"].at, 2)
}

// sharedBy runs a function that takes the limit and some time on two engines, so many times on each.
func sharedBy(t *testing.T, busy time.Duration, runs int, l limit.Limit) *callLog {
	f := newFleet(t)
	c := new(callLog)
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", busyFor(c, busy), builder.Limits(builder.Takes(l.Shared(), 0)))
	}
	a, b := w(), w()
	first, second := f.open(engine.Config{Workers: 8}, a), f.open(engine.Config{Workers: 8}, b)
	all := slices.Concat(startAll(t, first, a, numbers(runs)...), startAll(t, second, b, numbers(runs)...))
	endAll(t, first, all)
	require.Len(t, c.at, 2*runs)
	return c
}

// The slots of an engine that died come back.
func TestSlotsOfADeadEngineComeBack(t *testing.T) {
	f := newFleet(t)
	began := make(chan string, 10)
	w := func(name string) *builder.FuncRef[int, int] {
		return builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
			began <- name
			if name == "dies" {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return n, nil
		}, builder.Limits(builder.Takes(limit.Resource("slots", 1).Shared(), 0)))
	}
	dies, lives := w("dies"), w("lives")
	a := f.open(engine.Config{}, dies)
	startAll(t, a, dies, 1)
	require.Equal(t, "dies", <-began)
	b := f.open(engine.Config{}, lives)
	runs := startAll(t, b, lives, 2)
	require.Eventually(t, func() bool {
		answer, err := b.Why(t.Context(), runs[0].ID)
		require.NoError(t, err)
		return strings.Contains(answer.String(), "waits for 1 of slots slots")
	}, 30*time.Second, 10*time.Millisecond)
	require.Empty(t, began)
	require.NoError(t, a.Kill())
	endAll(t, b, runs)
}

// What is set of a limit or a queue by one engine holds for the others.
func TestEnginesLearnWhatIsSet(t *testing.T) {
	f := newFleet(t)
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", echo, builder.Limits(builder.Takes(limit.Calls(10, time.Second), 0)))
	}
	one, two := w(), w()
	a, b := f.open(engine.Config{}, one), f.open(engine.Config{}, two)
	_, err := a.Do(t.Context(), workflow.SetLimit("calls", 3))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r, err := b.Do(t.Context(), workflow.Limits())
		require.NoError(t, err)
		return r.Limits[0].Limit.N == 3
	}, 30*time.Second, 10*time.Millisecond)
}
