package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// always is a rate that has room for whatever a benchmark does.
func always(a limit.Algorithm) limit.Limit {
	l := limit.Rate("rate", 1e9, time.Minute, a)
	l.Each = 1
	return l
}

// An uncontended acquisition and its release.
func BenchmarkLimit(b *testing.B) {
	full := always(limit.SlidingWindow) // its log is as long as it gets
	full.Per = time.Millisecond
	for _, c := range []struct {
		name   string
		limits []limit.Limit
	}{
		{"resource", []limit.Limit{limit.Resource("slots", 5)}},
		{"gcra", []limit.Limit{always(limit.GCRA)}},
		{"token bucket", []limit.Limit{always(limit.TokenBucket)}},
		{"leaky bucket", []limit.Limit{always(limit.LeakyBucket)}},
		{"fixed window", []limit.Limit{always(limit.FixedWindow)}},
		{"sliding window", []limit.Limit{always(limit.SlidingWindow)}},
		{"sliding window, full log", []limit.Limit{full}},
		{"resource and sliding window", []limit.Limit{limit.Resource("slots", 5), always(limit.SlidingWindow)}},
		{"breaker", []limit.Limit{limit.Breaker("breaker", 0.5, time.Minute, time.Second)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			set := limit.Must(limit.NewSet(c.limits...))
			acquire(b, set)
		})
	}
	b.Run("key of 1000", func(b *testing.B) {
		keys := limit.Must(limit.NewKeys(limit.Resource("slots", 5)))
		for n := range 1000 {
			acquireOnce(b, keys.For(fmt.Sprint(n)))
		}
		acquire(b, keys.For("500"))
	})
}

func acquire(b *testing.B, from limit.Limiter) {
	b.ReportAllocs()
	for b.Loop() {
		acquireOnce(b, from)
	}
}

func acquireOnce(t testing.TB, from limit.Limiter) {
	lease, err := from.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
}

// noTimers is a clock whose timers do not fire: one would keep the keys of the measurement before in memory.
type noTimers struct{}

func (noTimers) Now() time.Time { return time.Now() }
func (noTimers) AfterFunc(time.Duration, func()) (stop func() bool) {
	return func() bool { return true }
}

// memoryOfKeys is what a key costs, its name of 15 bytes included, when it was used a number of times.
func memoryOfKeys(t testing.TB, uses int, limits ...limit.Limit) float64 {
	const n = 100_000
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	keys := limit.Must(limit.Config{Clock: noTimers{}}.NewKeys(limits...))
	for i := range n {
		one := keys.For(fmt.Sprintf("customer-%06d", i))
		for range uses {
			acquireOnce(t, one)
		}
	}
	cost := (heap() - before) / n
	require.Equal(t, n, keys.Len())
	return cost
}

// 100,000 keys cost less than 200 bytes each.
func TestMemoryOfKeys(t *testing.T) {
	slots := limit.Resource("running", 2)
	calls := limit.Calls(10, time.Hour)
	paced := calls
	paced.Algorithm = limit.GCRA
	paced.N = 200 // at once: a burst of eleven
	for _, c := range []struct {
		name   string
		limits []limit.Limit
		uses   int
		most   float64
	}{
		{"slots", []limit.Limit{slots}, 10, 200},
		{"a sliding window, used once", []limit.Limit{calls}, 1, 200},
		{"gcra", []limit.Limit{paced}, 10, 200},
		{"slots and gcra", []limit.Limit{slots, paced}, 10, 200},
		{"slots and a sliding window, used once", []limit.Limit{slots, calls}, 1, 200},
		{"slots and a sliding window, full", []limit.Limit{slots, calls}, 10, 400},
	} {
		cost := memoryOfKeys(t, c.uses, c.limits...)
		t.Logf("%s: %.0f bytes a key", c.name, cost)
		require.Less(t, cost, c.most, c.name)
	}
}

// The next tick, and what is due of 10,000 schedules when none is.
func BenchmarkSchedule(b *testing.B) {
	daily, err := schedule.Cron("0 8 * * mon-fri", "Europe/Berlin")
	require.NoError(b, err)
	now := time.Date(2030, 3, 29, 12, 0, 0, 0, time.UTC)
	b.Run("next", func(b *testing.B) {
		for b.Loop() {
			daily.Next(now)
		}
	})
	b.Run("due", func(b *testing.B) {
		for b.Loop() {
			daily.Due(now, now.Add(time.Minute))
		}
	})
}

// BenchmarkManyHolds is what tasq limits and its page read when 10,000 cases hold a limit, each that of its own key.
func BenchmarkManyHolds(b *testing.B) {
	const n = 10_000
	d := builder.New[int]("loading")
	load := builder.Task(d, "load", builder.Work[int, int]{
		Input: builder.CaseInput(d), Run: func(_ context.Context, ship int) (int, error) { return ship, nil }})
	leave := builder.Task(d, "leave", builder.Work[int, int]{Input: builder.Output(load)})
	d.Path(d.Start(), load, leave, d.End())
	d.Hold(builder.TakesBy(limit.Resource("berth", 1), 1, func(ship int) string { return fmt.Sprint("ship-", ship) }), load, leave)
	w := d.MustBuild()
	e, err := open(file(b.TempDir()), 64, w)
	require.NoError(b, err)
	for begun := 0; begun < n; {
		require.NoError(b, e.Update(b.Context(), func(tx *engine.Tx) error {
			for range min(500, n-begun) {
				if _, err := w.Start(b.Context(), tx, begun); err != nil {
					return err
				}
				begun++
			}
			return nil
		}))
	}
	read := func() (l workflow.LimitInfo) {
		require.NoError(b, e.View(b.Context(), func(r store.Reader) error {
			list, err := why.ReadLimits(b.Context(), r, nil)
			if len(list) == 1 {
				l = list[0]
			}
			return err
		}))
		return l
	}
	for read().Held < n {
		time.Sleep(100 * time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		read()
	}
	require.NoError(b, e.Close())
}
