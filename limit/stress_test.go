package limit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
)

// Many goroutines use a pool, its members beside it, and keys, with deadlines and changes: never more than the capacity is
// held, everyone is served or gets the error of its context, and nothing is held or waited for at the end.
func TestManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity = 3
		limits := []limit.Limit{limit.Resource("slots", capacity), limit.Calls(40, time.Minute)}
		a, b := newSet(t, limits...), newSet(t, limits...)
		pool := limit.Must(limit.NewPool(limit.Member{Name: "a", Set: a}, limit.Member{Name: "b", Set: b}))
		keys := limit.Must(limit.NewKeys(limits...))
		sources := []limit.Limiter{pool, pool, pool, a, b, keys.For("x"), keys.For("y")}

		var mu sync.Mutex
		held := make(map[string]int64)
		served, late := 0, 0
		use := func(rnd *rand.Rand) {
			i := rnd.IntN(len(sources))
			n := 1 + rnd.Int64N(capacity)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(300))*time.Second)
			defer cancel()
			lease, err := sources[i].Acquire(ctx, limit.Take("slots", n))
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				mu.Lock()
				late++
				mu.Unlock()
				return
			}
			name := lease.From()
			if name == "" {
				name = []string{"", "", "", "a", "b"}[i]
			}
			count := func(n int64) {
				mu.Lock()
				defer mu.Unlock()
				held[name] += n
				require.LessOrEqual(t, held[name], int64(capacity), name)
			}
			count(n)
			<-time.After(time.Duration(rnd.IntN(5000)) * time.Millisecond)
			count(-n)
			lease.Release()
			mu.Lock()
			served++
			mu.Unlock()
		}
		var all sync.WaitGroup
		for g := range 40 {
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(7, uint64(g)))
				for range 30 {
					<-time.After(time.Duration(rnd.IntN(20)) * time.Second)
					use(rnd)
				}
			})
		}
		all.Go(func() {
			for i := range 50 {
				<-time.After(5 * time.Second)
				paused := limit.Calls(40*int64(i%2), time.Minute)
				paused.Each = 1
				require.NoError(t, a.Change(paused))
				require.NoError(t, keys.Change(paused))
			}
			require.NoError(t, a.Change(limits[1]))
			require.NoError(t, keys.Change(limits[1]))
		})
		all.Wait()
		require.Equal(t, 1200, served+late)
		require.Greater(t, served, 600, "late: %d", late)
		<-time.After(time.Hour)
		for _, u := range append(a.Usage(), b.Usage()...) {
			require.Equal(t, "0 0", fmt.Sprint(u.Used, u.Waiting), "%v", u.Limit)
		}
		require.Zero(t, keys.Len())
	})
}
