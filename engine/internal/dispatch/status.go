package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Status is what is known here of the work that is due: how much there is, and why a job does not start. Its methods are safe for
// concurrent use.
type Status struct{ s *scheduler }

// Status returns what is known of the work that is due.
func (d *Dispatcher) Status() *Status { return &Status{&d.sched} }

// Queues returns the queues that this engine knows, by name.
func (st *Status) Queues() []workflow.QueueInfo {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.d.o.Now().UnixMicro()
	found := make(map[string]*workflow.QueueInfo)
	of := func(name string) *workflow.QueueInfo {
		if found[name] == nil {
			found[name] = &workflow.QueueInfo{Queue: name, Workers: max(0, s.queues.limit(name)), Defined: max(0, s.queues.configured(name)), Set: s.queues.workers[name], Paused: s.queues.paused[name], PausedKeys: store.QueueValue{Keys: s.queues.pausedKeys[name]}.PausedKeys(), MaxPending: s.bounds.most[name]}
		}
		return found[name]
	}
	waits := func(n *entry) {
		if s.waiting.isGone(n) || n.queue == nil {
			return
		}
		info := of(n.queue.name)
		info.Waiting++
		if due := time.UnixMicro(n.due).UTC(); info.Oldest.IsZero() || due.Before(info.Oldest) {
			info.Oldest = due
		}
	}
	for name := range s.d.o.Queues {
		of(name)
	}
	for name := range s.queues.paused { // or whose number of workers was set, or with keys that are paused
		of(name)
	}
	for name, q := range s.queues.byName {
		of(name).Running, of(name).Keys = q.running, q.keys()
	}
	s.eachDue(now, waits)
	return slices.SortedFunc(func(yield func(workflow.QueueInfo) bool) {
		for q := range maps.Values(found) {
			if !yield(*q) {
				return
			}
		}
	}, func(a, b workflow.QueueInfo) int { return cmp.Compare(a.Queue, b.Queue) })
}

// eachDue calls f with the entries that are due and wait. They are in several places: the queues, the lines of batches and limits, closed
// hours, faults of the store, and the calendar, if they were not dispatched yet. The lock is held.
func (s *scheduler) eachDue(now int64, f func(*entry)) {
	for _, q := range s.queues.byName {
		for i := range q.ready {
			f(&q.ready[i])
		}
		for i := range q.held {
			f(&q.held[i])
		}
		for _, g := range q.lines.all {
			g.each(f)
		}
	}
	s.limits.Each(f)
	s.hours.each(f)
	s.waiting.until(now, f)
	s.retries.each(f)
}

// Running returns how many jobs of a queue have workers.
func (st *Status) Running(queue string) int {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues.byName[queue]; q != nil {
		return q.running
	}
	return 0
}

// LimitOf returns how many jobs of a queue can run here at a time: 0 if the queue is paused here, negative if this
// engine runs no jobs.
func (st *Status) LimitOf(queue string) int {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.s.queues.limit(queue)
}

// Full returns the bound of running jobs of all queues if it is reached; 0 if it is not, or if there is none.
func (st *Status) Full() int {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if !st.s.queues.full() {
		return 0
	}
	return st.s.queues.most
}

// Backlog is due work of one kind that has not started; the fields are those of the engine's type of that name.
type Backlog struct {
	Queue        string // "" for the default queue, and for timers
	Timers       bool
	Due, Failing int
	Oldest       time.Time
}

// Overdue returns the due work that has not started: timers first, then the queues by name.
func (st *Status) Overdue() []Backlog {
	s := st.s
	now := s.d.o.Now().UnixMicro()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[*jobQueue]*Backlog)
	count := func(n *entry, failing int) {
		b := found[n.queue]
		if b == nil {
			b = &Backlog{Timers: n.queue == nil}
			if n.queue != nil {
				b.Queue = n.queue.name
			}
			found[n.queue] = b
		}
		b.Due++
		b.Failing += failing
		if due := time.UnixMicro(n.due).UTC(); b.Oldest.IsZero() || due.Before(b.Oldest) {
			b.Oldest = due
		}
	}
	for _, q := range s.queues.byName {
		for i := range q.ready {
			if s.hours.isClosed(&q.ready[i], now) {
				continue // it has not been looked at, since no worker is free
			}
			count(&q.ready[i], 0)
		}
		for _, g := range q.lines.all {
			if g.mayBegin(now) {
				g.each(func(n *entry) {
					if !s.hours.isClosed(n, now) {
						count(n, 0)
					}
				})
			}
		}
	}
	s.retries.each(func(n *entry) { count(n, 1) })
	s.waiting.until(now, func(n *entry) { count(n, 0) }) // due, and not yet dispatched, for example after the clock was set
	var list []Backlog
	if b := found[nil]; b != nil {
		list = append(list, *b)
		delete(found, nil)
	}
	for _, b := range slices.SortedFunc(maps.Values(found), func(a, b *Backlog) int { return cmp.Compare(a.Queue, b.Queue) }) {
		list = append(list, *b)
	}
	return list
}

// IsTriedAgain reports whether a job met a fault when it was to start, and waits to be tried again.
func (st *Status) IsTriedAgain(job workitem.JobID) (found bool) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retries.each(func(n *entry) { found = found || n.job == job })
	return found
}

// Limits returns the usage of the limits of the functions here, by name.
func (st *Status) Limits() []admission.Usage {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.s.limits.Usage()
}

// Limited returns what a job or one of its steps waits for; nothing if it waits for no limit.
func (st *Status) Limited(job workitem.JobID, step string) []admission.Wait {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.s.limits.Why(job, step)
}

// LimitedOf calls f with what the jobs of a root case and their steps wait for.
func (st *Status) LimitedOf(root workitem.CaseID, f func(job workitem.JobID, step string, waits []admission.Wait)) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.s.limits.EachWait(func(n *entry, t *ticket, waits func() []admission.Wait) {
		if n.root == root {
			f(t.Job, t.Step, waits())
		}
	})
}

// KeyPaused returns the fairness key of a due job that waits here because its key is paused; false if it does not.
func (st *Status) KeyPaused(queue string, job workitem.JobID) (key string, paused bool) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues.byName[queue]
	if q == nil {
		return "", false
	}
	i := slices.IndexFunc(q.held, func(n entry) bool { return n.job == job })
	if i < 0 || !s.queues.keyPaused(&q.held[i]) {
		return "", false
	}
	return q.held[i].turn.key, true
}

// KeysPausedOf calls f with the due jobs of a root case whose keys are paused.
func (st *Status) KeysPausedOf(root workitem.CaseID, f func(job workitem.JobID, key string)) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues.byName {
		for i := range q.held {
			if n := &q.held[i]; n.root == root && s.queues.keyPaused(n) {
				f(n.job, n.turn.key)
			}
		}
	}
}

// Gathered returns how many jobs are in the line of a job, and the latest time at which they start; 0 if it is in none.
func (st *Status) Gathered(job workitem.JobID) (n int, due time.Time) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	at, ok := st.s.batches.positions[job]
	if !ok {
		return 0, time.Time{}
	}
	return at.line.len(), time.UnixMicro(at.line.due()).UTC()
}

// Turn is the position of a waiting job in the round robin.
type Turn struct {
	Ahead int // the number of jobs of its key that start before it
	Keys  int // the number of keys with waiting jobs of the same priority
}

// InTurn returns the position of a job in the round robin; false if it has no key, or is not due.
func (st *Status) InTurn(job workitem.JobID) (Turn, bool) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.fair.turns[job]
	if t == nil {
		return Turn{}, false
	}
	before := max(t.sharer.begun, t.sharer.last-int64(t.sharer.waiting))
	return Turn{Ahead: int(max(0, t.round-before-1)), Keys: len(t.rotation.keys)}, true
}
