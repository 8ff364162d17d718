package dispatch

import "github.com/tasq-dev/tasq/workitem"

// calendar holds the pending jobs by the time that they are due, and the suspended ones that time wakes. The lock of the scheduler
// guards it.
//
// An entry in the middle of a heap is not searched for: a job that is canceled, or woken early, leaves its entry behind, and that is
// passed over when its time comes.
//
//	add(job, 9:00)    cancel(job, 9:00)    at 9:00 pop finds the entry, and passes it over
//	add(job, 9:00)    cancel(job, 9:00)    add(job, 9:00)    at 9:00 pop returns it
type calendar struct {
	list      entries                  // by due
	gone      map[dueJob]struct{}      // in list, or in a queue behind it, but canceled or woken since
	suspended map[workitem.JobID]int64 // when the suspended ones go on, if only time wakes them
}

// dueJob is a job at one of its times: one that is woken early leaves its old entry behind.
type dueJob struct {
	job workitem.JobID
	due int64
}

func (n entry) key() dueJob { return dueJob{n.job, n.due} }

func newCalendar() calendar {
	return calendar{gone: make(map[dueJob]struct{}), suspended: make(map[workitem.JobID]int64)}
}

// add has a job wait for its time, also if it was canceled for that time before. If an entry of then is left, both come, and the second
// is refused as it is to begin.
func (c *calendar) add(n entry) {
	delete(c.gone, n.key())
	c.list.push(n, byDue)
}

// sleep has a suspended job wait for the time that wakes it.
func (c *calendar) sleep(n entry) {
	c.suspended[n.job] = n.due
	c.add(n)
}

// putBack has an entry that was taken out wait again. It stays passed over if its job was canceled meanwhile.
func (c *calendar) putBack(n entry) { c.list.push(n, byDue) }

// wake passes over the entry that a suspended job has for the end of its sleep.
func (c *calendar) wake(job workitem.JobID, now int64) {
	due, ok := c.suspended[job]
	if !ok {
		return
	}
	delete(c.suspended, job)
	if due > now {
		c.cancel(dueJob{job, due})
	}
}

// leastCompact is how many entries are passed over before they are looked at: a smaller heap costs nothing.
const leastCompact = 1024

// cancel has the entry of a job at a time passed over.
func (c *calendar) cancel(n dueJob) {
	c.gone[n] = struct{}{}
	if len(c.gone) > leastCompact && len(c.gone) > len(c.list)/2 {
		c.compact()
	}
}

// compact takes what is gone out of the heap, so that timeouts that are never reached do not pile up.
func (c *calendar) compact() {
	kept := c.list[:0]
	for i := range c.list {
		if !c.isGone(&c.list[i]) {
			kept = append(kept, c.list[i])
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
	c.list.heapify(byDue)
	clear(c.gone)
}

// isGone reports whether an entry is passed over.
func (c *calendar) isGone(n *entry) bool {
	_, gone := c.gone[n.key()]
	return gone
}

// pop takes the first entry out that is due by now.
func (c *calendar) pop(now int64) (n entry, ok bool) {
	if c.next() > now {
		return entry{}, false
	}
	return c.list.pop(byDue), true
}

// next is when the first entry is due; never if there is none.
func (c *calendar) next() int64 {
	for len(c.list) > 0 && c.isGone(&c.list[0]) {
		delete(c.gone, c.list.pop(byDue).key())
	}
	if len(c.list) == 0 {
		return never
	}
	return c.list[0].due
}

// until calls f with the entries that are due by a time, in any order.
func (c *calendar) until(due int64, f func(*entry)) {
	c.list.until(due, func(n *entry) {
		if !c.isGone(n) {
			f(n)
		}
	})
}

// clear forgets all entries. What was canceled stays so, for those that left it before.
func (c *calendar) clear() { c.list = nil }
