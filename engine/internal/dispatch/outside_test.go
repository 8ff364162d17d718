package dispatch

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// lateClock is the clock of a bubble, which can be set forward while no goroutine runs.
type lateClock struct{ by time.Duration }

func (c *lateClock) Now() time.Time { return time.Now().Add(c.by) }

func (c *lateClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// The goroutine of an acquisition runs only after the portion that it was granted has expired: it does not begin, and acquires once more in its old place.
func TestAPortionExpiresBeforeItsGoroutineRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := limit.Calls(1, time.Minute).Shared()
		table, clock := &limitTable{rows: make(map[store.LimitKey]store.LimitRow), now: 1}, new(lateClock)
		ctx, cancel := context.WithCancel(t.Context())
		none, err := registry.New(slog.New(slog.DiscardHandler), nil)
		require.NoError(t, err)
		d := New(Options{Context: ctx, Definitions: none, Clock: clock, Now: clock.Now, Limits: []limit.Limit{calls}, Rows: table, Fleet: true,
			Faults: fault.NewLog(slog.New(slog.DiscardHandler), clock.Now), Active: func(int) {}})
		admit := func(meanwhile time.Duration) { // leases are admitted, and their goroutines run after the time
			d.sched.mu.Lock()
			d.sched.limits.admitLeases()
			clock.by += meanwhile
			table.now += int64(meanwhile)
			d.sched.mu.Unlock()
			synctest.Wait()
		}
		acquired, both := make(chan int, 2), make(chan struct{})
		table.read = func() { <-both } // the store answers when both wait
		for i := range 2 {
			go func() {
				if _, err := d.Acquire(ctx, []workitem.Take{{Limit: "calls", N: 1}}); err == nil {
					acquired <- i
				}
			}()
			synctest.Wait()
		}
		close(both)
		synctest.Wait()
		admit(2 * time.Second) // a portion of this limit is used within 1.2 s
		require.Empty(t, acquired)
		admit(0) // what was not used has been returned, and is granted once more
		require.Len(t, acquired, 1)
		require.Equal(t, 0, <-acquired, "the first in the line")
		require.EqualValues(t, 1, d.Status().Limits()[0].Used)
		require.Equal(t, 1, d.Status().Limits()[0].Waiting)
		cancel()
	})
}
