package dispatch

import (
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// pendingBounds counts the waiting jobs of the queues with a bound, see Options.MaxPending. The lock of the scheduler
// guards it.
type pendingBounds struct {
	most    map[string]int
	counted map[workitem.JobID]*jobQueue // nil if no queue has a bound
}

func newPendingBounds(most map[string]int) pendingBounds {
	if len(most) == 0 {
		return pendingBounds{}
	}
	return pendingBounds{most: most, counted: make(map[workitem.JobID]*jobQueue)}
}

// count counts a job as waiting. A job is counted once, whatever happens to its entries: it may have several, and leave
// and enter the queue.
func (b *pendingBounds) count(j *state.Job, q *jobQueue) {
	if _, known := b.counted[j.ID]; b.counted == nil || known || j.State != state.JobPending {
		return
	}
	b.counted[j.ID] = q
	q.pending++
}

// uncount no longer counts a job as waiting.
func (b *pendingBounds) uncount(id workitem.JobID) {
	q := b.counted[id]
	if q == nil {
		return
	}
	delete(b.counted, id)
	q.pending--
	b.notify(q)
}

// notify wakes all starts that wait for room in a queue. They try again; those that find the queue full again wait for
// the next room. To wake one for each job that left would lose room if that one had given up meanwhile.
func (b *pendingBounds) notify(q *jobQueue) {
	if q.room != nil && q.pending+q.uncommitted < b.most[q.name] {
		close(q.room)
		q.room = nil
	}
}

// reserve reserves room for a job whose start is not committed. The error is a *workflow.FullError, whose channel is
// closed when there may be room.
func (b *pendingBounds) reserve(q *jobQueue) (room <-chan struct{}, err error) {
	if most := b.most[q.name]; q.pending+q.uncommitted >= most {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		return q.room, &workflow.FullError{Queue: q.name, Pending: q.pending + q.uncommitted, Max: most}
	}
	// Between the start and its commit the job is in neither count of the queue, and other starts are in the same batch.
	q.uncommitted++
	return nil, nil
}

// settle ends reservations.
func (b *pendingBounds) settle(q *jobQueue, reserved int) {
	q.uncommitted -= reserved
	b.notify(q)
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
			if _, bounded := s.bounds.most[opened.Job.Queue]; !bounded {
				continue
			}
			q := s.queues.of(opened.Job.Queue)
			if room, err := s.bounds.reserve(q); err != nil {
				return room, err
			}
			if a.taken == nil {
				a.taken = make(map[*jobQueue]int)
			}
			a.taken[q]++
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
		s.bounds.settle(q, n)
	}
	a.taken = nil
}
