package limit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
)

func newSet(t *testing.T, limits ...limit.Limit) *limit.Set {
	t.Helper()
	s, err := limit.NewSet(limits...)
	require.NoError(t, err)
	return s
}

func acquire(t *testing.T, l limit.Limiter, amounts ...limit.Amount) limit.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), amounts...)
	require.NoError(t, err)
	return lease
}

// free reports whether the limiter admits at once, and takes nothing.
func free(t *testing.T, l limit.Limiter, amounts ...limit.Amount) bool {
	t.Helper()
	lease, err := l.TryAcquire(amounts...)
	require.NoError(t, err)
	if lease == nil {
		return false
	}
	lease.Release()
	return true
}

func TestNoMoreThanTheCapacityIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Resource("db", 3))
		var mu sync.Mutex
		var now, peak, done int
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() {
				_, err := limit.Do(t.Context(), s, func(context.Context, limit.Lease) (int, error) {
					mu.Lock()
					now++
					peak = max(peak, now)
					mu.Unlock()
					<-time.After(time.Second)
					mu.Lock()
					now--
					done++
					mu.Unlock()
					return 0, nil
				})
				require.NoError(t, err)
			})
		}
		start := time.Now()
		all.Wait()
		require.Equal(t, 3, peak)
		require.Equal(t, 60, done)
		require.Equal(t, 20*time.Second, time.Since(start))
		require.Equal(t, []limit.Usage{{Limit: limit.Resource("db", 3)}}, s.Usage())
	})
}

func TestASetIsTakenWholeOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Resource("a", 1), limit.Resource("b", 1), limit.Rate("tokens", 10, time.Minute, limit.TokenBucket))
		b := acquire(t, s, limit.Take("a", 0), limit.Take("b", 1), limit.Take("tokens", 4))
		lease, err := s.TryAcquire(limit.Take("tokens", 1))
		require.NoError(t, err)
		require.Nil(t, lease)
		require.Zero(t, s.Usage()[0].Used, "nothing of a")
		require.EqualValues(t, 4, s.Usage()[2].Used, "no tokens")
		require.Equal(t, limit.Unknown, s.Wait(limit.Take("tokens", 1)))
		require.Equal(t, 6*time.Second, s.Wait(limit.Take("b", 0), limit.Take("tokens", 7)))

		got := make(chan limit.Lease, 1)
		go func() { got <- acquire(t, s, limit.Take("tokens", 7)) }()
		synctest.Wait()
		require.Equal(t, 1, s.Usage()[0].Waiting)
		b.Release()
		start := time.Now()
		(<-got).Release()
		require.Equal(t, 6*time.Second, time.Since(start), "all of it, when the last is free")
	})
}

func TestWaitersAreServedInTheOrderOfAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Resource("db", 5), limit.Resource("other", 1))
		leases := []limit.Lease{acquire(t, s), acquire(t, s, limit.Take("db", 2), limit.Take("other", 0))}
		var mu sync.Mutex
		var order []string
		ask := func(name string, amounts ...limit.Amount) {
			go func() {
				lease := acquire(t, s, append(amounts, limit.Take("other", 0))...)
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				<-time.After(time.Second)
				lease.Release()
			}()
			synctest.Wait()
		}
		ask("large", limit.Take("db", 5))
		ask("small 1", limit.Take("db", 1))
		ask("small 2", limit.Take("db", 1))
		require.Empty(t, order, "two are free, and the large one comes first")
		require.False(t, free(t, s, limit.Take("db", 1), limit.Take("other", 0)), "trying does not overtake")
		require.True(t, free(t, s, limit.Take("db", 0), limit.Take("other", 0)))
		require.Equal(t, 3, s.Usage()[0].Waiting)
		for _, l := range leases {
			l.Release()
		}
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, "large", order[0])
		require.Len(t, order, 3)
	})
}

// Who waits for one limit is not in the way of those who want another one.
func TestWaitersOfDifferentLimitsDoNotMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Resource("a", 1), limit.Resource("b", 1))
		a, err := s.Only("a")
		require.NoError(t, err)
		b, err := s.Only("b")
		require.NoError(t, err)
		_, err = s.Only("c")
		require.ErrorIs(t, err, limit.ErrUnknownLimit)
		_, err = a.TryAcquire(limit.Take("b", 1))
		require.ErrorContains(t, err, `"b" is not in this view of the set: name it in Only`)
		holder := acquire(t, a)
		go func() { acquire(t, a).Release() }()
		synctest.Wait()
		require.True(t, free(t, b))
		require.Len(t, a.Usage(), 1)
		require.Len(t, s.Usage(), 2)
		holder.Release()
	})
}

// An acquisition of two limits of which one is always in use is not starved by those that need one of them.
func TestAnAcquisitionOfTwoLimitsIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Resource("a", 1), limit.Resource("b", 1))
		var views []*limit.Set
		for _, name := range []string{"a", "b"} {
			view, err := s.Only(name)
			require.NoError(t, err)
			views = append(views, view)
		}
		holders := []limit.Lease{acquire(t, views[0]), acquire(t, views[1])}
		both := make(chan limit.Lease, 1)
		go func() { both <- acquire(t, s) }()
		synctest.Wait()
		for range 5 {
			for _, view := range views {
				go func() { acquire(t, view).Release() }()
			}
		}
		synctest.Wait()
		for _, holder := range holders {
			require.Empty(t, both)
			holder.Release()
			synctest.Wait()
		}
		(<-both).Release()
		synctest.Wait()
	})
}

func TestADeadlineEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Resource("db", 2), limit.Rate("tokens", 60, time.Minute, limit.TokenBucket))
		holder := acquire(t, s, limit.Take("db", 1), limit.Take("tokens", 58))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("shutting down"))
		defer cancel()
		start := time.Now()
		_, err := s.Acquire(ctx, limit.Take("db", 2), limit.Take("tokens", 6))
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "limit: stopped while it waited for 2 of slots db, not enough are free and "+
			"6 of rate tokens, free in 3.95s: context deadline exceeded: shutting down")
		_, err = s.Acquire(ctx, limit.Take("tokens", 1))
		require.EqualError(t, err, "limit: stopped before it was admitted: context deadline exceeded: shutting down")
		require.EqualValues(t, 1, s.Usage()[0].Used)
		require.Zero(t, s.Usage()[0].Waiting)

		// A waiter that leaves makes room for the next one.
		canceled, cancelNow := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, err := s.Acquire(canceled, limit.Take("db", 2), limit.Take("tokens", 0))
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		all.Go(func() { acquire(t, s, limit.Take("db", 1), limit.Take("tokens", 0)).Release() })
		synctest.Wait()
		require.Equal(t, 2, s.Usage()[0].Waiting)
		cancelNow()
		all.Wait()
		holder.Release()
		require.True(t, free(t, s, limit.Take("db", 2), limit.Take("tokens", 0)))
	})
}

func TestReleaseIsIdempotent(t *testing.T) {
	s := newSet(t, limit.Resource("a", 1), limit.Resource("b", 2), limit.Resource("c", 3))
	lease := acquire(t, s)
	second := acquire(t, s, limit.Take("a", 0))
	for range 3 {
		lease.Release()
	}
	usage := s.Usage()
	require.Equal(t, []int64{0, 1, 1}, []int64{usage[0].Used, usage[1].Used, usage[2].Used})
	require.Empty(t, lease.From())
	second.Release()
	require.Zero(t, s.Usage()[1].Used)
}

// The body fails before it commits: its error is the result, the slot is free, and what was acquired counts.
func TestAnErrorBeforeCommit(t *testing.T) {
	s := newSet(t, limit.Resource("db", 1), limit.Rate("tokens", 10, time.Hour, limit.TokenBucket))
	broken := errors.New("connection reset")
	calls := 0
	got, err := retry.Do(t.Context(), retry.Constant(3, 0), func(ctx context.Context, attempt int) (string, error) {
		return limit.Do(ctx, s, func(_ context.Context, lease limit.Lease) (string, error) {
			if calls++; calls < 3 {
				return "", broken
			}
			return "rows", lease.Commit("tokens", 1)
		}, limit.Take("tokens", 3))
	})
	require.NoError(t, err, "capacity 1, two failures, no deadlock")
	require.Equal(t, "rows", got)
	require.Zero(t, s.Usage()[0].Used)
	require.EqualValues(t, 7, s.Usage()[1].Used, "3 + 3 + 1")

	_, err = limit.Do(t.Context(), s, func(context.Context, limit.Lease) (int, error) { return 0, broken },
		limit.Take("tokens", 1))
	require.True(t, err == broken, "unchanged")
	require.Zero(t, s.Usage()[0].Used)
}

func TestAPanicReleases(t *testing.T) {
	s := newSet(t, limit.Resource("db", 1))
	require.PanicsWithValue(t, "a bug", func() {
		_, _ = limit.Do(t.Context(), s, func(context.Context, limit.Lease) (int, error) { panic("a bug") })
	})
	require.True(t, free(t, s))
}

func TestCommitSaysWhatWasUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Rate("tokens", 100, time.Minute, limit.SlidingWindow), limit.Resource("db", 1))
		lease := acquire(t, s, limit.Take("tokens", 90))
		got := make(chan limit.Lease, 1)
		go func() { got <- acquire(t, s, limit.Take("tokens", 80), limit.Take("db", 0)) }()
		synctest.Wait()
		require.Empty(t, got)
		require.NoError(t, lease.Commit("tokens", 20))
		synctest.Wait()
		require.Len(t, got, 1, "a refund admits who waits")
		require.ErrorIs(t, lease.Commit("tokens", -1), limit.ErrAmount)
		require.ErrorIs(t, lease.Commit("db", 1), limit.ErrAmount)
		require.ErrorIs(t, lease.Commit("files", 1), limit.ErrUnknownLimit)
		require.NoError(t, lease.Commit("tokens", 300))
		require.Equal(t, time.Minute, s.Wait(limit.Take("tokens", 1), limit.Take("db", 0)), "a debt")
		lease.Release()
		require.ErrorIs(t, lease.Commit("tokens", 1), limit.ErrReleased)
	})
}

func TestLimitsChangeWhileTheyAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, limit.Resource("db", 2), limit.Calls(100, time.Second))
		leases := []limit.Lease{acquire(t, s), acquire(t, s)}
		require.NoError(t, s.Change(limit.Resource("db", 1)))
		leases[0].Release()
		require.False(t, free(t, s), "one is held, of one")
		admitted := make(chan error, 3)
		for n := range int64(3) {
			go func() {
				lease, err := s.Acquire(t.Context(), limit.Take("db", n+1))
				if err == nil {
					lease.Release()
				}
				admitted <- err
			}()
			synctest.Wait()
			if n == 0 {
				require.NoError(t, s.Change(limit.Resource("db", 4)))
				require.NoError(t, <-admitted, "raised: who waits is admitted")
				require.NoError(t, s.Change(limit.Resource("db", 0)))
			}
		}
		leases[1].Release()
		<-time.After(time.Hour)
		require.Empty(t, admitted, "paused")
		why, err := s.Why()
		require.NoError(t, err)
		require.Equal(t, "[1 of slots db, which is paused]", fmt.Sprint(why))
		require.NoError(t, s.Change(limit.Resource("db", 2)))
		err = errors.Join(<-admitted, <-admitted)
		require.ErrorIs(t, err, limit.ErrTooMuch)
		require.EqualError(t, err, "limit: 3 of slots db were asked for, and it admits 2 at once: ask for less, or raise it: "+
			"more than the limit admits at once", "and 2 of 2 are admitted")

		require.ErrorIs(t, s.Change(limit.Resource("dbb", 2)), limit.ErrUnknownLimit)
		require.ErrorIs(t, s.Change(limit.Resource("db", -2)), limit.ErrInvalid)
		err = s.Change(limit.Rate("db", 2, time.Second, limit.GCRA))
		require.ErrorIs(t, err, limit.ErrInvalid)
		require.ErrorContains(t, err, "its algorithm is slots and cannot become gcra while it is used")
	})
}

func TestASetOfManyLimits(t *testing.T) {
	var limits []limit.Limit
	for i := range 9 {
		limits = append(limits, limit.Resource(strings.Repeat("x", i+1), 1))
	}
	s := newSet(t, limits...)
	lease := acquire(t, s)
	require.False(t, free(t, s, limit.Take("xx", 0)))
	lease.Release()
	require.True(t, free(t, s))
	none := newSet(t)
	require.True(t, free(t, none))
	require.Zero(t, none.Wait())
}

// A clock that a test moves, also backwards.
func TestTheClockIsInjected(t *testing.T) {
	clock := virtual.NewClock()
	s, err := limit.Config{Clock: clock}.NewSet(limit.Calls(1, time.Minute))
	require.NoError(t, err)
	acquire(t, s).Release()
	require.Equal(t, time.Minute, s.Wait())
	clock.Set(virtual.Epoch.Add(-5 * time.Hour))
	require.Equal(t, time.Minute, s.Wait(), "no time has passed")
	got := make(chan limit.Lease, 1)
	go func() { got <- acquire(t, s) }()
	require.Eventually(t, func() bool { return s.Usage()[0].Waiting == 1 }, time.Minute, time.Millisecond)
	clock.Set(clock.Now().Add(time.Minute))
	(<-got).Release()
}
