package limit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
)

func TestEachKeyHasItsOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := limit.Must(limit.NewKeys(limit.Resource("running", 2), limit.Calls(10, time.Minute)))
		for n := range 5 {
			key := fmt.Sprint("customer ", n)
			one, two := acquire(t, k.For(key)), acquire(t, k.For(key))
			require.Equal(t, key, one.From())
			require.False(t, free(t, k.For(key)), "two at once")
			one.Release()
			two.Release()
			for range 8 {
				acquire(t, k.For(key)).Release()
			}
			require.False(t, free(t, k.For(key)), "ten a minute")
		}
		require.Equal(t, 5, k.Len())
		require.Equal(t, time.Minute, k.For("customer 1").Wait())
		require.Zero(t, k.For("a new one").Wait())
		require.Equal(t, limit.Unknown, k.For("a new one").Wait(limit.Take("running", 3)))
		require.Equal(t, 5, k.Len(), "asking makes no key")
		start := time.Now()
		acquire(t, k.For("customer 1")).Release()
		require.Equal(t, time.Minute, time.Since(start))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := k.For("customer 1").Acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestIdleKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := limit.Must(limit.NewKeys(limit.Resource("running", 1), limit.Rate("tokens", 10, time.Minute, limit.SlidingWindow)))
		held := acquire(t, k.For("held"), limit.Take("tokens", 1))
		for n := range 5000 {
			acquire(t, k.For(fmt.Sprint(n)), limit.Take("tokens", 1)).Release()
		}
		rate := acquire(t, k.For("rate"), limit.Take("tokens", 1), limit.Take("running", 0))
		require.Equal(t, 5002, k.Len())
		<-time.After(3 * time.Minute)
		require.Equal(t, 2, k.Len(), "those with a lease stay")
		require.NoError(t, rate.Commit("tokens", 100))
		rate.Release()
		require.False(t, free(t, k.For("rate"), limit.Take("tokens", 1)), "so a debt is remembered")
		require.False(t, free(t, k.For("held"), limit.Take("tokens", 1)))
		done := make(chan struct{})
		go func() {
			defer close(done)
			acquire(t, k.For("held"), limit.Take("tokens", 1)).Release()
		}()
		synctest.Wait()
		held.Release()
		<-done
		<-time.After(3 * time.Hour)
		require.Zero(t, k.Len())
		require.True(t, free(t, k.For("held"), limit.Take("tokens", 1)))
	})
}

func TestAChangeHoldsForAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := limit.Must(limit.NewKeys(limit.Resource("running", 1)))
		var all sync.WaitGroup
		for n := range 100 {
			held := acquire(t, k.For(fmt.Sprint(n)))
			all.Go(func() {
				acquire(t, k.For(fmt.Sprint(n))).Release()
				held.Release()
			})
		}
		synctest.Wait()
		require.NoError(t, k.Change(limit.Resource("running", 2)))
		all.Wait()
		require.ErrorIs(t, k.Change(limit.Resource("runs", 2)), limit.ErrUnknownLimit)
	})
}

func TestAPoolTakesTheMemberThatAdmitsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member := func(name string, n int64, per time.Duration) limit.Member {
			return limit.Member{Name: name, Set: newSet(t, limit.Calls(n, per), limit.Resource("running", 5))}
		}
		a, b, c := member("a", 2, time.Minute), member("b", 2, 20*time.Second), member("c", 1, time.Hour)
		p, err := limit.NewPool(a, b, c)
		require.NoError(t, err)
		got := make(map[string]int)
		take := func() {
			lease := acquire(t, p)
			got[lease.From()]++
			lease.Release()
		}
		for range 5 {
			take()
		}
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 1}, got, "none waits while another has room")
		require.Equal(t, 20*time.Second, p.Wait())
		require.False(t, free(t, p))
		start := time.Now()
		take()
		take()
		require.Equal(t, 20*time.Second, time.Since(start))
		require.Equal(t, map[string]int{"a": 2, "b": 4, "c": 1}, got)

		// One that waits in all of them is in no queue when it was admitted, or when its context has ended.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = p.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = p.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for _, m := range []limit.Member{a, b, c} {
			require.Zero(t, m.Set.Usage()[0].Waiting)
			require.Zero(t, m.Set.Usage()[1].Used)
		}
	})
}

func TestAPoolServesInTheOrderOfAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newSet(t, limit.Resource("x", 1)), newSet(t, limit.Resource("x", 2))
		p, err := limit.NewPool(limit.Member{Name: "a", Set: a}, limit.Member{Name: "b", Set: b})
		require.NoError(t, err)
		holders := []limit.Lease{acquire(t, p), acquire(t, p), acquire(t, p)}
		order := make(chan int, 20)
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				lease := acquire(t, p)
				order <- n
				<-time.After(time.Second)
				lease.Release()
			})
			synctest.Wait()
		}
		for _, h := range holders {
			<-time.After(time.Second / 7)
			h.Release()
		}
		all.Wait()
		for n := range 20 {
			require.Equal(t, n, <-order)
		}
	})
}

func TestMembersThatCannotAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small, large := newSet(t, limit.Resource("x", 1)), newSet(t, limit.Resource("x", 3))
		p := limit.Must(limit.NewPool(limit.Member{Name: "small", Set: small}, limit.Member{Name: "large", Set: large}))
		held := acquire(t, p, limit.Take("x", 2))
		require.Equal(t, "large", held.From())
		_, err := p.Acquire(t.Context(), limit.Take("x", 4))
		require.ErrorIs(t, err, limit.ErrTooMuch)
		require.ErrorContains(t, err, "member small: ")
		_, err = p.Why(limit.Take("x", 4))
		require.ErrorIs(t, err, limit.ErrTooMuch)
		why, err := p.Why(limit.Take("x", 2))
		require.NoError(t, err)
		require.EqualValues(t, 3, why[0].Limit.N, "that of the large one")
		failed := make(chan error)
		go func() {
			_, err := p.Acquire(t.Context(), limit.Take("x", 3))
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, large.Change(limit.Resource("x", 2)))
		require.ErrorIs(t, <-failed, limit.ErrTooMuch, "the last that could was lowered")

		for want, members := range map[string][]limit.Member{
			"a pool without members admits nothing": nil,
			`member "a" of the pool has no set`:     {{Name: "a"}},
			`two members called "a"`:                {{Name: "a", Set: small}, {Name: "a", Set: large}},
		} {
			_, err := limit.NewPool(members...)
			require.ErrorIs(t, err, limit.ErrInvalid)
			require.ErrorContains(t, err, want)
		}
	})
}
