package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/workitem"
)

// An entry waits longer with each fault, up to a bound; those with equally many faults go together, and keep their
// place.
func TestRetriesGoTogetherByTheirFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r retries
		var over []int
		add := func(n entry) { r.add(n, func(level int) { over = append(over, level) }) }
		began := time.Now()
		for n := range 3 {
			add(entry{job: workitem.JobID{byte(n)}, due: int64(10 - n)})
		}
		add(entry{job: workitem.JobID{9}, faults: fault.Levels - 1})
		seen := 0
		r.each(func(*entry) { seen++ })
		require.Equal(t, 4, seen)

		<-time.After(fault.Wait(0))
		synctest.Wait()
		require.Equal(t, []int{0}, over, "after %s", time.Since(began))
		first := r.take(0)
		require.Len(t, first, 3)
		for n, e := range first {
			require.Equal(t, entry{job: workitem.JobID{byte(n)}, due: int64(10 - n), faults: 1, durableClaim: true}, e)
		}
		require.Empty(t, r.take(0))

		add(first[0]) // its second fault
		<-time.After(fault.Wait(1))
		synctest.Wait()
		require.Equal(t, []int{0, 1}, over)
		require.EqualValues(t, 2, r.take(1)[0].faults)

		last := r.take(fault.Levels - 1) // at once, as when the store works again: its timer is over with it
		require.Len(t, last, 1)
		require.EqualValues(t, fault.Levels-1, last[0].faults, "there are no more levels")
		<-time.After(time.Hour)
		require.Equal(t, []int{0, 1}, over)
	})
}
