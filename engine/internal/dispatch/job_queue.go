package dispatch

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// jobQueue holds the due jobs of one queue.
type jobQueue struct {
	name    string
	limit   int
	running int
	ready   entries // by priority
	held    []entry // due, but the queue is paused
	lines   lines   // of those that are done together, by entry.batch

	reading  int // unread entries that are handed out; with batches, each is put back when it has been read
	promised int // jobs that are due and that commands of the open batch leave here

	fair       bool                // functions have keys between which the queue takes turns
	rotations  map[int32]*rotation // by priority
	promisedTo map[string]struct{} // the keys of which a job is promised, since the last turn

	// What follows is of a queue with a bound.
	pending int           // jobs that wait to begin
	coming  int           // that starts have opened which are not committed
	room    chan struct{} // closed when there is room again; nil if no start waits for that
}

// queueOf finds or makes a queue.
func (s *scheduler) queueOf(name string) *jobQueue {
	q := s.queues[name]
	if q == nil {
		q = &jobQueue{name: name, limit: s.limitOf(name), fair: s.d.fairQueues[name]}
		s.queues[name] = q
	}
	return q
}

// urgency orders jobs that age: each unit of priority is worth a time of waiting. All wait equally long, so the order never changes.
func (d *Dispatcher) urgency(j *state.Job) int64 {
	aging := d.o.Aging.Microseconds()
	if aging <= 0 {
		return 0
	}
	due, most := j.Due.UnixMicro(), int64(math.MaxInt64/4)/aging
	return due - max(-most, min(int64(j.Priority), most))*aging
}

// counts notes that a job waits to begin. The lock is held.
func (s *scheduler) counts(j *state.Job, q *jobQueue) {
	if _, known := s.counted[j.ID]; s.counted == nil || known || j.State != state.JobPending {
		return
	}
	s.counted[j.ID] = q
	q.pending++
}

// begunOrGone notes that a job waits no longer. The lock is held.
func (s *scheduler) begunOrGone(id workitem.JobID) {
	q := s.counted[id]
	if q == nil {
		return
	}
	delete(s.counted, id)
	q.pending--
	s.notifyRoom(q)
}

func (s *scheduler) notifyRoom(q *jobQueue) {
	if q.room != nil && q.pending+q.coming < s.d.o.MaxPending[q.name] {
		close(q.room)
		q.room = nil
	}
}

// Admission is the room that a start takes in queues with a bound, until it is committed.
type Admission struct{ taken map[*jobQueue]int }

// Admit takes room for the jobs that the start in a transaction has opened. The error is a *workflow.FullError; its room is closed when
// there may be room.
func (d *Dispatcher) Admit(tx *commit.Tx, a *Admission) (room <-chan struct{}, err error) {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, changes := range tx.Changed() {
		for _, e := range changes {
			opened, ok := e.(*state.JobOpened)
			if !ok || opened.Job.Kind != state.JobRun && opened.Job.Kind != state.JobCall {
				continue
			}
			most, bounded := d.o.MaxPending[opened.Job.Queue]
			if !bounded {
				continue
			}
			q := s.queueOf(opened.Job.Queue)
			if q.pending+q.coming >= most {
				if q.room == nil {
					q.room = make(chan struct{})
				}
				return q.room, &workflow.FullError{Queue: q.name, Pending: q.pending + q.coming, Max: most}
			}
			if a.taken == nil {
				a.taken = make(map[*jobQueue]int)
			}
			a.taken[q]++
			q.coming++
		}
	}
	return nil, nil
}

// Settle ends an admission: what was committed is counted as waiting by now.
func (d *Dispatcher) Settle(a *Admission) {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	for q, n := range a.taken {
		q.coming -= n
		s.notifyRoom(q)
	}
	a.taken = nil
}

// Queues lists the queues that this engine knows, by name.
func (d *Dispatcher) Queues() []workflow.QueueInfo {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	now := d.o.Now().UnixMicro()
	found := make(map[string]*workflow.QueueInfo)
	of := func(name string) *workflow.QueueInfo {
		if found[name] == nil {
			found[name] = &workflow.QueueInfo{Queue: name, Workers: max(0, s.limitOf(name)), Defined: max(0, d.definedOf(name)), Set: s.workers[name], Paused: s.paused[name], MaxPending: d.o.MaxPending[name]}
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
	for name := range d.o.Queues {
		of(name)
	}
	for name := range s.paused { // or with workers that were set
		of(name)
	}
	for name, q := range s.queues {
		of(name).Running, of(name).Keys = q.running, q.keys()
		for i := range q.ready {
			waits(&q.ready[i])
		}
		for i := range q.held {
			waits(&q.held[i])
		}
		for _, g := range q.lines.all {
			g.each(waits)
		}
	}
	s.limits.Each(waits)
	s.hours.each(waits)
	s.waiting.until(now, waits)
	s.again.each(waits)
	return slices.SortedFunc(func(yield func(workflow.QueueInfo) bool) {
		for q := range maps.Values(found) {
			if !yield(*q) {
				return
			}
		}
	}, func(a, b workflow.QueueInfo) int { return cmp.Compare(a.Queue, b.Queue) })
}
