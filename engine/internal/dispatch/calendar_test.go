package dispatch

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/workitem"
)

// A calendar gives out the jobs that are due and were not canceled or woken since, whatever happened in what order. The reference
// keeps one time for each job.
func TestACalendarGivesOutWhatIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := newCalendar(), int64(0)
		due, asleep := make(map[workitem.JobID]int64), make(map[workitem.JobID]bool)
		job := func() workitem.JobID { return workitem.JobID{byte(rapid.IntRange(0, 5).Draw(t, "job"))} }
		first := func() int64 {
			if len(due) == 0 {
				return never
			}
			return slices.Min(slices.Collect(maps.Values(due)))
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := entry{job: job(), due: now + rapid.Int64Range(1, 10).Draw(t, "in")}
				if due[n.job] != 0 || c.isGone(&n) { // for the same time again: see TestAnEntryThatIsAddedAgain
					return
				}
				due[n.job], asleep[n.job] = n.due, rapid.Bool().Draw(t, "asleep")
				if asleep[n.job] {
					c.sleep(n)
				} else {
					c.add(n)
				}
			},
			"cancel": func(*rapid.T) {
				if id := job(); due[id] != 0 && !asleep[id] {
					c.cancel(dueJob{id, due[id]})
					delete(due, id)
				}
			},
			"wake": func(*rapid.T) {
				id := job()
				c.wake(id, now)
				if asleep[id] && due[id] > now {
					delete(due, id)
				}
				delete(asleep, id)
			},
			"compact": func(*rapid.T) { c.compact() },
			"pass": func(t *rapid.T) {
				now += rapid.Int64Range(0, 5).Draw(t, "time")
				found := make(map[workitem.JobID]int64)
				c.until(now, func(n *entry) { found[n.job] = n.due })
				for n, ok := c.pop(now); ok; n, ok = c.pop(now) {
					require.Equal(t, due[n.job], n.due)
					require.Equal(t, first(), n.due, "the first comes first")
					require.LessOrEqual(t, n.due, now)
					require.Equal(t, n.due, found[n.job])
					delete(due, n.job)
					delete(found, n.job)
				}
				require.Empty(t, found)
			},
			"": func(t *rapid.T) {
				require.Equal(t, first(), c.next())
			},
		})
	})
}

// What was canceled and is added for the same time again comes, and may come twice. Both are passed over if it is canceled once more
// before its time, but for one.
func TestAnEntryThatIsAddedAgain(t *testing.T) {
	count := func(c *calendar) (n int) {
		for _, ok := c.pop(5); ok; _, ok = c.pop(5) {
			n++
		}
		return n
	}
	c, n := newCalendar(), entry{job: workitem.JobID{1}, due: 5}
	c.add(n)
	c.cancel(n.key())
	c.add(n)
	require.Equal(t, 2, count(&c))
	c.add(n)
	c.cancel(n.key())
	c.add(n)
	c.cancel(n.key())
	require.LessOrEqual(t, count(&c), 1)
}

// What is canceled before its time is given free, so that timeouts that are never reached cost nothing.
func TestACalendarForgetsWhatWasCanceled(t *testing.T) {
	c := newCalendar()
	for i := range 100_000 {
		n := entry{job: workitem.JobID{byte(i), byte(i >> 8), byte(i >> 16)}, due: int64(1_000_000 - i)}
		c.add(n)
		c.cancel(n.key())
	}
	require.LessOrEqual(t, len(c.list), leastCompact+1)
	require.LessOrEqual(t, len(c.gone), leastCompact+1)
	require.EqualValues(t, never, c.next())
}

// An entry that was taken out, and whose job was canceled before it is put back, is passed over; one that is added again is not.
func TestAnEntryThatIsPutBackStaysCanceled(t *testing.T) {
	c, n := newCalendar(), entry{job: workitem.JobID{1}, due: 5}
	c.add(n)
	taken, ok := c.pop(5)
	require.True(t, ok)
	c.cancel(n.key())
	c.putBack(taken)
	_, ok = c.pop(5)
	require.False(t, ok)
	c.cancel(n.key())
	c.add(n)
	_, ok = c.pop(5)
	require.True(t, ok)
}
