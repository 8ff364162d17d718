package dispatch

import "github.com/tasq-dev/tasq/workitem"

// calendar has the pending jobs by due time, and the suspended jobs that a timer wakes. The lock of the scheduler guards it.
//
// Entries are deleted lazily: a job that is canceled or woken early leaves its entry in the heap, and gone records
// that. The entry is skipped when its time comes. Searching the heap for it would cost O(n) for each canceled timeout,
// and most timeouts are canceled.
//
//	add(job, 9:00)    cancel(job, 9:00)    at 9:00 pop finds the entry, and passes it over
//	add(job, 9:00)    cancel(job, 9:00)    add(job, 9:00)    at 9:00 pop returns it
type calendar struct {
	list      entries                  // a heap by due time
	gone      map[dueJob]struct{}      // entries in list or in a queue whose jobs were canceled or woken since
	suspended map[workitem.JobID]int64 // when suspended jobs resume, if a timer wakes them
}

// dueJob identifies an entry: one job can have entries with different due times.
type dueJob struct {
	job workitem.JobID
	due int64
}

func (n entry) key() dueJob { return dueJob{n.job, n.due} }

func newCalendar() calendar {
	return calendar{gone: make(map[dueJob]struct{}), suspended: make(map[workitem.JobID]int64)}
}

// add adds an entry. If an entry of the same job and time was canceled and is still in the heap, both are returned by
// pop, and the claim of the second one is refused.
func (c *calendar) add(n entry) {
	delete(c.gone, n.key())
	c.list.push(n, byDue)
}

// sleep adds a suspended job with the time at which it resumes.
func (c *calendar) sleep(n entry) {
	c.suspended[n.job] = n.due
	c.add(n)
}

// putBack adds an entry again that pop has returned. If its job was canceled meanwhile, it is skipped as before.
func (c *calendar) putBack(n entry) { c.list.push(n, byDue) }

// wake cancels the entry with the end of the sleep of a suspended job.
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

// leastCompact is the number of canceled entries from which on the heap is compacted.
const leastCompact = 1024

// cancel marks the entry of a job with a due time to be skipped.
func (c *calendar) cancel(n dueJob) {
	c.gone[n] = struct{}{}
	if len(c.gone) > leastCompact && len(c.gone) > len(c.list)/2 {
		c.compact()
	}
}

// compact removes canceled entries from the heap once they are the majority, so that timeouts that never fire do not
// accumulate.
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

// isGone reports whether an entry was canceled.
func (c *calendar) isGone(n *entry) bool {
	_, gone := c.gone[n.key()]
	return gone
}

// pop removes and returns the first entry that is due.
func (c *calendar) pop(now int64) (n entry, ok bool) {
	if c.next() > now {
		return entry{}, false
	}
	return c.list.pop(byDue), true
}

// next returns when the first entry is due; never if there is none.
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

// clear removes all entries. Cancellations are kept for entries that are in queues already.
func (c *calendar) clear() { c.list = nil }
