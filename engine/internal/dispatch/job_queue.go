package dispatch

import (
	"math"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// jobQueue has the due jobs of one queue. A due job without a worker is in one of these places:
//
//	ready           it waits for a worker
//	held            its queue or its fairness key is paused
//	lines           it waits for others of its batch
//	limitGate       it waits for room in a limit
//	hours           it waits for the time window of its function
//	parking         its case is suspended
//	retries         the store has failed when it was to start
//
// All but the first three belong to the scheduler, since they do not depend on the queue.
type jobQueue struct {
	name    string
	limit   int
	running int
	ready   entries // by priority
	held    []entry // due jobs while the queue is paused
	lines   lines   // jobs of batches, by entry.batch

	reading  int // unread entries that were handed out; if there are batches, each is put back after it was read
	promised int // due jobs that commands of the current batch of the writer keep here

	fair       bool                // some functions of the queue have fairness keys
	rotations  map[int32]*rotation // by priority
	promisedTo map[string]struct{} // the keys of the promised jobs since the last dispatch

	// The fields below are for queues with a bound.
	pending     int           // waiting jobs
	uncommitted int           // jobs opened by starts that are not committed
	room        chan struct{} // closed when there is room; nil if no start waits for it
}

// queueOf returns the queue with a name, and creates it if necessary.
func (s *scheduler) queueOf(name string) *jobQueue {
	q := s.queues[name]
	if q == nil {
		q = &jobQueue{name: name, limit: s.limitOf(name), fair: s.d.fairQueues[name]}
		s.queues[name] = q
	}
	return q
}

// urgency returns the sort key for jobs that age: the due time, minus Aging for each unit of priority. It does not
// change while a job waits, since all jobs age at the same rate, so the heap stays ordered.
func (d *Dispatcher) urgency(j *state.Job) int64 {
	aging := d.o.Aging.Microseconds()
	if aging <= 0 {
		return 0
	}
	due, most := j.Due.UnixMicro(), int64(math.MaxInt64/4)/aging
	return due - max(-most, min(int64(j.Priority), most))*aging
}

// countWaiting counts a job as waiting. The lock is held.
func (s *scheduler) countWaiting(j *state.Job, q *jobQueue) {
	// A job is counted once, whatever happens to its entries: it may have several, and leave and enter the queue.
	if _, known := s.counted[j.ID]; s.counted == nil || known || j.State != state.JobPending {
		return
	}
	s.counted[j.ID] = q
	q.pending++
}

// uncountWaiting no longer counts a job as waiting. The lock is held.
func (s *scheduler) uncountWaiting(id workitem.JobID) {
	q := s.counted[id]
	if q == nil {
		return
	}
	delete(s.counted, id)
	q.pending--
	s.notifyRoom(q)
}

// notifyRoom wakes all starts that wait for room in a queue. They try again; those that find the queue full again wait for
// the next room. To wake one for each job that left would lose room if that one had given up meanwhile.
func (s *scheduler) notifyRoom(q *jobQueue) {
	if q.room != nil && q.pending+q.uncommitted < s.d.o.MaxPending[q.name] {
		close(q.room)
		q.room = nil
	}
}

// Admission is the room that a start has reserved in bounded queues, until it is committed.
type Admission struct{ taken map[*jobQueue]int }

// Admit reserves room for the jobs that the start in a transaction has opened. The error is a *workflow.FullError,
// whose channel is closed when there may be room.
func (d *Dispatcher) Admit(tx *commit.Tx, a *Admission) (room <-chan struct{}, err error) {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	// A start opens the jobs of its first tasks. Those of later tasks are not bounded, since their case could not go
	// on.
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
			if q.pending+q.uncommitted >= most {
				if q.room == nil {
					q.room = make(chan struct{})
				}
				return q.room, &workflow.FullError{Queue: q.name, Pending: q.pending + q.uncommitted, Max: most}
			}
			if a.taken == nil {
				a.taken = make(map[*jobQueue]int)
			}
			// Between the start and its commit the job is in neither count of the queue, and other starts are in the
			// same batch.
			a.taken[q]++
			q.uncommitted++
		}
	}
	return nil, nil
}

// Settle ends an admission. If the start was committed, its jobs are counted as waiting by now.
func (d *Dispatcher) Settle(a *Admission) {
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	for q, n := range a.taken {
		q.uncommitted -= n
		s.notifyRoom(q)
	}
	a.taken = nil
}
