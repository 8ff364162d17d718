package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/limit"
)

var errDown = errors.New("503 Service Unavailable")

// call is some work behind a breaker.
func call(t *testing.T, s limit.Limiter, err error) {
	t.Helper()
	_, got := limit.Do(t.Context(), s, func(context.Context, limit.Lease) (int, error) { return 0, err })
	require.True(t, got == err, "%v", got)
}

func TestABreakerOpensAndDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limit.Breaker("openai", 0.5, time.Minute, 30*time.Second)
		s := newSet(t, b, limit.Resource("running", 10))
		for range 5 {
			call(t, s, nil)
		}
		for range 4 {
			call(t, s, errDown)
		}
		call(t, s, context.Canceled)
		require.Zero(t, s.Wait(), "four of ten")
		call(t, s, errDown)
		call(t, s, errDown)
		require.Equal(t, 30*time.Second, s.Wait(), "six of twelve")
		why, err := s.Why()
		require.NoError(t, err)
		require.Equal(t, "breaker openai, which is open for 30s", why[0].String())
		require.False(t, free(t, s))

		start := time.Now()
		probe := acquire(t, s)
		require.Equal(t, 30*time.Second, time.Since(start), "it waits, and does not fail")
		require.Equal(t, limit.Unknown, s.Wait(), "one probe at a time")
		why, err = s.Why()
		require.NoError(t, err)
		require.Equal(t, "breaker openai, whose probe has no result yet", why[0].String())
		probe.Fail()
		probe.Release()
		require.Equal(t, 30*time.Second, s.Wait(), "a probe that fails opens it again")
		<-time.After(30 * time.Second)
		call(t, s, nil)
		require.Zero(t, s.Wait(), "one that succeeds closes it")
		for range 9 {
			call(t, s, errDown)
		}
		require.Zero(t, s.Wait(), "old results are forgotten: nine are fewer than ten")
	})
}

func TestABreakerCountsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limit.Breaker("openai", 1, time.Minute, time.Second)
		b.Least, b.N = 1, 2
		s := newSet(t, b)
		late := acquire(t, s)
		slow := acquire(t, s)
		call(t, s, errDown)
		<-time.After(time.Second)
		slow.Fail()
		slow.Release()
		require.Zero(t, s.Wait(), "it began before the breaker opened, and is no probe")
		one, two := acquire(t, s), acquire(t, s)
		require.EqualValues(t, 2, s.Usage()[0].Used)
		require.False(t, free(t, s))
		one.Release()
		third := acquire(t, s)
		require.False(t, free(t, s), "one good probe of two")
		<-time.After(time.Second)
		two.Release()
		require.Zero(t, s.Wait())
		for _, l := range []limit.Lease{third, late} {
			l.Fail()
			l.Release()
			require.Zero(t, s.Wait(), "what began before it closed does not count")
		}
		_, err := s.TryAcquire(limit.Take("openai", 2))
		require.ErrorIs(t, err, limit.ErrTooMuch)
	})
}

func TestABreakerByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limit.Breaker("host", 1, time.Minute, time.Hour)
		b.Least = 3
		k := limit.Must(limit.NewKeys(b))
		for range 3 {
			call(t, k.For("a.example"), errDown)
			call(t, k.For("b.example"), nil)
		}
		require.False(t, free(t, k.For("a.example")))
		require.True(t, free(t, k.For("b.example")))
		<-time.After(3 * time.Hour)
		require.Equal(t, 1, k.Len(), "one that is not closed is remembered")
		call(t, k.For("a.example"), nil)
		<-time.After(3 * time.Hour)
		require.Zero(t, k.Len())
	})
}

func TestAPausedBreaker(t *testing.T) {
	b := limit.Breaker("host", 1, time.Minute, time.Hour)
	b.N = 0
	require.NoError(t, func() error { b.Each = 1; return b.Validate() }())
	require.False(t, free(t, newSet(t, b)))
}

// Random results at random times, against a list of all results: the breaker opens when the share is reached, and the
// results it counts are those of the window, up to a tenth of it.
func TestRandomBreakers(t *testing.T) {
	type result struct {
		at     int64
		failed bool
	}
	rapid.Check(t, func(t *rapid.T) {
		l := limit.Breaker("x", rapid.Float64Range(0.1, 1).Draw(t, "share"), time.Minute, 10*time.Second)
		l.Least = rapid.Int64Range(1, 20).Draw(t, "least")
		var s limit.State
		var results []result
		share := func(now int64, over time.Duration) (all, failed float64) {
			for _, r := range results {
				if r.at > now-int64(over) {
					all++
					if r.failed {
						failed++
					}
				}
			}
			return all, failed
		}
		now := int64(time.Hour)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "time")
			if wait := l.Wait(&s, now, 1); wait > 0 {
				require.LessOrEqual(t, wait, l.Pause)
				now += int64(wait)
				g := l.Take(&s, now, 1)
				require.Equal(t, limit.Unknown, l.Wait(&s, now, 1), "half open")
				l.Give(&s, g, now, false)
				results = nil
			}
			g := l.Take(&s, now, 1)
			failed := rapid.Bool().Draw(t, "failed")
			l.Give(&s, g, now, failed)
			results = append(results, result{now, failed})
			s = stored(t, s)
			all, bad := share(now, l.Per)
			fewer, _ := share(now, l.Per*9/10)
			open := l.Wait(&s, now, 1) > 0
			if all == fewer && int64(all) >= l.Least {
				require.Equal(t, bad >= l.Share*all, open, "%v of %v, %v", bad, all, l)
			}
			require.False(t, open && int64(all) < l.Least, "too few results: %v", all)
		}
	})
}
