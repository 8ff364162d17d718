package dispatch

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// pendingBounds counts the waiting jobs of the queues with a bound, see Options.MaxPending. The lock of the scheduler
// guards it.
//
//	pending      wait in this engine: counted one by one
//	uncommitted  opened by starts of this engine that are not committed
//	elsewhere    wait in other engines, or in none: counted in the database at each heartbeat and before a start is
//	             refused, and in between changed by what this engine offers and takes
type pendingBounds struct {
	most    map[string]int
	doubt   bool                         // this engine has joined its fleet anew, and may have lost jobs that it counts
	counted map[workitem.JobID]*jobQueue // nil if no queue has a bound
}

// waits returns how many jobs of a queue count for its bound.
func (q *jobQueue) waits() int { return q.pending + q.uncommitted + q.elsewhere }

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
	if q.room != nil && q.waits() < b.most[q.name] {
		close(q.room)
		q.room = nil
	}
}

// reserve reserves room for a job whose start is not committed. The error is a *workflow.FullError, whose channel is
// closed when there may be room.
func (b *pendingBounds) reserve(q *jobQueue) (room <-chan struct{}, err error) {
	if most := b.most[q.name]; q.waits() >= most {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		return q.room, &workflow.FullError{Queue: q.name, Pending: q.waits(), Max: most}
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

// offered counts a job that this engine has offered to all. Whether another engine takes it, the next look shows.
func (b *pendingBounds) offered(l *queues, j *state.Job) {
	if _, bounded := b.most[j.Queue]; bounded && j.State == state.JobPending && isWork(j) {
		q := l.of(j.Queue)
		q.elsewhere++
		q.offers++
	}
}

// taken no longer counts a job as one that waits elsewhere, since this engine has taken it.
func (b *pendingBounds) taken(l *queues, j *state.Job) {
	if _, bounded := b.most[j.Queue]; !bounded || j.State != state.JobPending || !isWork(j) || b.counted[j.ID] != nil {
		return
	}
	q := l.of(j.Queue)
	q.elsewhere = max(0, q.elsewhere-1)
}

// isWork reports whether a job needs a worker.
func isWork(j *state.Job) bool { return j.Kind == state.JobRun || j.Kind == state.JobCall }

// lookPause is the least time between two looks for room that refused starts cause.
const lookPause = 20 * time.Millisecond

// recountPause is the least time between two recounts that refused starts cause, see recount.
const recountPause = time.Second

// maxHeld is how many jobs of this engine a recount reads, beside those that it counts.
const maxHeld = 20_000

// roomLook keeps refused starts from asking the database more often than lookPause.
type roomLook struct {
	mu        sync.Mutex // held during a look, for which others wait
	recent    bool
	recounted time.Time
}

// LookForRoom counts again what waits elsewhere in the queues with a bound, unless that was just done, and wakes the starts
// for which there is room. It does nothing if all jobs belong to this engine.
func (d *Dispatcher) LookForRoom(ctx context.Context) error {
	d.look.mu.Lock()
	defer d.look.mu.Unlock()
	if d.look.recent {
		return nil
	}
	if now := d.o.Now(); now.Sub(d.look.recounted).Abs() >= recountPause {
		d.look.recounted = now
		d.sched.doubtCounts()
	}
	if err := d.countElsewhere(ctx); err != nil {
		return err
	}
	d.look.recent = true
	time.AfterFunc(lookPause, func() {
		d.look.mu.Lock()
		defer d.look.mu.Unlock()
		d.look.recent = false
	})
	return nil
}

// countElsewhere counts what waits in the queues with a bound, and does not belong to this engine.
func (d *Dispatcher) countElsewhere(ctx context.Context) error {
	if d.o.Elsewhere == nil || len(d.o.MaxPending) == 0 {
		return nil
	}
	if err := d.recount(ctx); err != nil {
		return err
	}
	// What is offered while the database counts may not be among what it finds. It counts beside that, until the next look.
	before := d.sched.offers()
	found, err := d.o.Elsewhere(ctx, d.o.MaxPending)
	if err != nil {
		return err
	}
	s := &d.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range d.o.MaxPending {
		q := s.queues.of(name)
		q.elsewhere = found[name] + q.offers - before[name]
		s.bounds.notify(q)
	}
	return nil
}

// doubtCounts has the next look recount.
func (s *scheduler) doubtCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounds.doubt = true
}

// recount no longer counts the jobs that this engine has lost to others, when these declared it dead, nor those that other engines have ended.
func (d *Dispatcher) recount(ctx context.Context) error {
	s := &d.sched
	s.mu.Lock()
	var counted map[workitem.JobID]*jobQueue
	if s.bounds.doubt {
		counted = maps.Clone(s.bounds.counted)
	}
	s.bounds.doubt = false
	s.mu.Unlock()
	if len(counted) == 0 {
		return nil
	}
	most := len(counted) + maxHeld
	held, err := d.o.Held(ctx, most)
	if err != nil {
		s.doubtCounts()
		return err
	}
	if len(held) == most {
		return nil // what is not in the list may be this engine's
	}
	for _, j := range held {
		if j.State == state.JobPending {
			delete(counted, j.ID)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range counted {
		s.bounds.uncount(id)
	}
	return nil
}

// offers returns how many jobs of each queue with a bound this engine has offered so far.
func (s *scheduler) offers() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	offers := make(map[string]int, len(s.bounds.most))
	for name := range s.bounds.most {
		offers[name] = s.queues.of(name).offers
	}
	return offers
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
			if !ok || !isWork(opened.Job) {
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
