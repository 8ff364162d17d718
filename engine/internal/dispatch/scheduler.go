package dispatch

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// scheduler holds an entry for every pending job of the workflows of this engine, with its due time and its queue.
// Entries are small, so that a hundred thousand sleeping cases take a few megabytes; and a single timer wakes it, so
// that nothing polls.
//
// Due timers and claims are passed to the writer in the order of (due time, creation), under one lock, so that the
// outcome of a case does not depend on the scheduling of goroutines. Before that, jobs that wait for a worker are
// selected by priority.
type scheduler struct {
	d        *Dispatcher
	mu       sync.Mutex
	waiting  calendar
	queues   queues
	bounds   pendingBounds
	fair     fairness
	claims   claims
	parked   parking
	hours    hours
	batches  batches
	groups   map[workitem.JobID]*group // batches that were passed to the writer, until their jobs are claimed
	pool     pool
	alarm    dispatchAlarm
	on       bool
	stopping bool
	stopped  chan struct{} // closed when stopping is set
	beat     func() bool   // stops the timer of the next heartbeat; nil if there is none
	loops    loopGuard
	retries  retries
	offered  map[workitem.JobID]bool // jobs that the current command has offered to other engines
	others   bool                    // there are other engines
	next     []entry                 // reused memory for the entries of a dispatch
	limits   limitGate

	shared exchange  // exchange of shared limits with the store
	holds  caseHolds // what cases hold over several tasks
}

// entry is a pending job, or a suspended job that a timer wakes.
type entry struct {
	due          int64 // microseconds since 1970
	job          workitem.JobID
	root         workitem.CaseID
	queue        *jobQueue // nil for work of the writer itself
	priority     int32
	urgent       int64    // due, minus the head start of the priority; 0 for all jobs without aging
	durableClaim bool     // make the claim durable before it runs: it may have crashed a process before, or the claim has failed
	hours        uint16   // the index of the time window of its function; 0 for none, and while unknown
	faults       uint8    // consecutive faults of the store when it was to start
	unread       bool     // its limits and hours are unknown
	ticket       *ticket  // the limits that it needs; nil for none, and while unknown
	turn         *turn    // for fair scheduling; nil if its queue has no keys
	batch        *lineKey // the batch that it belongs to; nil for none, and while unknown
	lease        *lease   // the entry is for a step of a running job, or for code outside of jobs, that waits for limits
}

func (s *scheduler) init(d *Dispatcher) {
	s.d = d
	fair := d.o.Definitions.FairQueues()
	s.waiting = newCalendar()
	s.parked = make(parking)
	s.queues = newQueues(&d.o, fair)
	s.bounds = newPendingBounds(d.o.MaxPending)
	s.claims = newClaims()
	s.stopped = make(chan struct{})
	s.groups = make(map[workitem.JobID]*group)
	s.offered = make(map[workitem.JobID]bool)
	s.fair = fairness{ages: d.o.Aging > 0, turns: make(map[workitem.JobID]*turn)}
	if len(fair) > 0 {
		s.fair.keyOf = d.fairKeyOf
	}
	s.initLimits()
}

// start enables the start of jobs.
func (s *scheduler) start() {
	s.mu.Lock()
	s.on = true
	s.mu.Unlock()
	s.dispatch()
}

// stop disables the claiming of jobs.
func (s *scheduler) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		close(s.stopped)
	}
	s.stopping = true
	s.alarm.stop()
	if s.beat != nil {
		s.beat()
	}
	s.pool.close()
	s.limits.Stop()
	s.shared.stop()
	for _, q := range s.queues.byName {
		// Each ready job is counted as activity until its claim has ended; these are not claimed any more.
		s.d.o.Active(-len(q.ready))
		q.ready = nil
	}
	s.stopRetries()
}

// committed processes the changes of a command to jobs. The writer calls it in the order of the commits and waits for it,
// so the entries follow the state of the trees, and nothing here may wait for the writer.
func (s *scheduler) committed(tree *state.Tree, changes []state.Change) {
	changed := false
	s.mu.Lock()
	for _, e := range changes {
		switch e := e.(type) {
		case *state.TaskMoved:
			s.holds.taskMoved(tree, e)
		case *state.CaseEnded:
			s.holds.caseEnded(tree, e.Case)
		case *state.JobOpened:
			changed = s.opened(tree, e.Job) || changed
		case *state.CaseSuspended:
			s.parkSuspended(tree)
			s.claims.hold(tree)
		case *state.CaseContinued:
			s.claims.hold(tree)
			changed = s.resumeParked(tree) || changed
		case *state.JobMoved:
			changed = s.moved(tree, e) || changed
		case *state.StepOpened, *state.StepMoved:
			s.claims.report(e)
		}
	}
	changed = changed || s.limits.readied
	s.mu.Unlock()
	if changed {
		s.dispatch()
	}
}

// A job has at most one claim at a time, and one entry, but for two cases: a suspended job has an entry for each of its
// steps that wait for limits (entriesOf), and a job that was canceled may have one that is marked to be skipped. An
// entry that is out of date is harmless: the kernel refuses its claim, and the entry is dropped.

// opened adds a new job, and reports whether it may be due now.
func (s *scheduler) opened(tree *state.Tree, j *state.Job) bool {
	if s.isOffered(j.ID) { // another engine will do it
		s.bounds.offered(&s.queues, j)
		return false
	}
	// Its claim was made together with it, or it has repeated too quickly.
	if s.claims.isReserved(j.ID) || s.loops.holds(j) {
		return false
	}
	return s.add(tree.Case(j.Case), j, false)
}

// moved processes a change of an existing job, and reports whether more may be due now.
func (s *scheduler) moved(tree *state.Tree, e *state.JobMoved) bool {
	s.parked.drop(tree.Root, e.Job)
	s.hours.drop(e.Job)
	s.batches.leave(e.Job)
	s.bounds.uncount(e.Job)
	if e.To != state.JobWaiting {
		s.fair.leave(e.Job)
	}
	s.waiting.wake(e.Job, s.d.o.Now().UnixMicro())
	// The worker of this engine continues if the change is its own claim or heartbeat. Any other change means that the
	// job is no longer its.
	goesOn := e.To == state.JobRunning && s.claims.of(e.Job).holds(e.Fence)
	if !goesOn {
		s.limits.Leave(e.Job)
		s.claims.interrupt(e)
	}
	switch {
	case e.To == state.JobPending || e.To == state.JobWaiting:
		c, j := tree.Job(e.Job)
		if j == nil || j.State != e.To {
			return false
		}
		if s.isOffered(e.Job) {
			s.bounds.offered(&s.queues, j)
			return false
		}
		return s.add(c, j, false)
	case !e.To.Live():
		s.drop(e)
	}
	return false
}

// add adds a pending job of a case, which is nil if it was not read. It skips jobs of workflows that this engine was
// not opened with.
func (s *scheduler) add(c *state.Case, j *state.Job, cautious bool) bool {
	if s.stopping || j.State != state.JobPending && (j.State != state.JobWaiting || j.Due.IsZero()) {
		return false
	}
	n := entry{due: j.Due.UnixMicro(), job: j.ID, root: j.Root, priority: shortPriority(j.Priority), durableClaim: cautious}
	if n.due > s.d.o.Now().UnixMicro() {
		n.durableClaim = true // the job waits for its time anyway, and each of its runs should be counted
	}
	if isWork(j) {
		n.queue = s.queues.of(j.Queue)
		s.bounds.count(j, n.queue)
		// This engine does not work the queue; another program does.
		if n.queue.limit <= 0 {
			return false
		}
		n.urgent = s.d.urgency(j)
		if c != nil {
			for _, m := range s.entriesOf(c, j, n) {
				s.put(m, j)
			}
			return true
		}
		n.unread = len(s.d.o.Limits) > 0 || s.d.haveHours || s.d.haveBatches || s.fair.hasKeys()
	}
	s.put(n, j)
	return true
}

// shortPriority clamps a priority to 32 bits, to keep entries small.
func shortPriority(p int) int32 { return int32(min(max(p, math.MinInt32), math.MaxInt32)) }

// addOne adds a single job outside of a commit.
// A due job may start at once, so it dispatches.
func (s *scheduler) addOne(j *state.Job) {
	s.mu.Lock()
	changed := s.add(nil, j, false)
	s.mu.Unlock()
	if changed {
		s.dispatch()
	}
}

// drop removes a job that has ended: it cancels the context of a running job, and marks a waiting one to be skipped
// when it is due.
func (s *scheduler) drop(e *state.JobMoved) {
	if r := s.claims.of(e.Job); r != nil {
		if e.To == state.JobCanceled {
			r.cancel(nil)
		}
		return
	}
	if e.To != state.JobCanceled {
		return
	}
	s.loops.forget(e.Job)
	s.waiting.cancel(dueJob{e.Job, e.Due.UnixMicro()})
}

// dispatch passes on what is due, and sets the timer for the next entry. Each stage can make work for the ones after it:
//
//	loops, windows, calendar ──▶ queues ──▶ hand out: a worker, hours, limits ──▶ sorted by due time ──▶ the writer
//	                               ▲                     │
//	                               └── limits.readied ◀──┘ a job that was passed on or gave up its place lets others go first
//
// The writer gets everything under the lock. Otherwise two calls on different goroutines could pass a later timer
// before an earlier one, and the outcome of a case would depend on the scheduling of goroutines.
func (s *scheduler) dispatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on || s.stopping {
		return
	}
	now := s.d.o.Now().UnixMicro()
	for _, j := range s.loops.release(now) {
		s.add(nil, j, false)
	}
	s.hours.open(now, s.enqueue)
	next := s.next[:0]
	for n, due := s.waiting.pop(now); due; n, due = s.waiting.pop(now) {
		if n.queue == nil {
			s.d.o.Active(1) // jobs of queues are counted by enqueue
			next = append(next, n)
		} else {
			s.enqueue(n)
		}
	}
	// A ticket that is made ready may belong to a queue that this dispatch has passed already.
	for again := true; again; again = s.limits.readied {
		s.limits.readied = false
		s.limits.passOn()
		s.limits.admitLeases()
		for _, q := range s.queues.byName {
			q.promised = 0
			clear(q.promisedTo)
		}
		next = s.handOut(now, next)
		if s.limits.Lapse(); !s.limits.readied {
			s.limits.PassOver()
		}
	}
	s.setAlarm(now)
	slices.SortFunc(next, inOrderOfClaims)
	for _, n := range next {
		if n.queue == nil {
			s.d.fire(n)
		} else {
			s.d.claim(n)
		}
	}
	clear(next)
	s.next = next[:0]
}

// inOrderOfClaims orders entries as they are passed to the writer. A job that was loaded without its case is put back, and acquires its limits, as soon
// as its case was read; so the most urgent of these are read first.
func inOrderOfClaims(a, b entry) int {
	switch {
	case a.unread != b.unread:
		if b.unread {
			return -1
		}
		return 1
	case a.unread && byPriority(&a, &b):
		return -1
	case a.unread && byPriority(&b, &a):
		return 1
	}
	return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.job[:], b.job[:]))
}

// mustRelease reports whether a job should release its worker when its function yields, because no such job may start
// now.
func (s *scheduler) mustRelease(n entry) bool {
	now := s.d.o.Now().UnixMicro()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.claims.of(n.job)
	return s.stopping || s.hours.isClosed(&n, now) || n.queue != nil && s.queues.isPaused(&n) || r != nil && r.held
}

// hold records that a worker runs a job, before its function is called: from then on, changes of its steps are reported
// to it, and its lease is renewed.
func (s *scheduler) hold(id workitem.JobID, r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims.begin(id, r)
	s.limits.Leave(id) // other entries of the job that wait for limits, see entriesOf
	s.keepBeating()
}

// endClaim records that a claim has ended. It frees the worker if it was the last claim of its group.
func (s *scheduler) endClaim(n entry, g *group, steps *worker.Journal, how outcome) {
	s.mu.Lock()
	s.claims.end(n.job, steps)
	if g == nil || g.claimEnded() {
		s.queues.free(n.queue)
	}
	if n.unread {
		n.queue.reading--
	}
	if how == notStarted {
		s.fair.leaveIf(n.job, n.turn)
	}
	s.limits.leave(n.ticket, how)
	if how == notStarted {
		s.checkHoldsOf(n.ticket)
	}
	more := len(n.queue.ready) > 0 || s.limits.readied || s.limits.IsPassed() || n.queue.lines.next(s.d.o.Now().UnixMicro()) != nil ||
		s.queues.most > 0 && s.queues.mostUrgent(nil, s.d.o.Now().UnixMicro()) != nil
	s.mu.Unlock()
	if more {
		s.dispatch() // before Active(-1): jobs in lines are counted only when they start, and the engine must not look idle in between
	}
	s.d.o.Active(-1)
	if !more && s.d.o.TakeWork != nil {
		s.d.o.TakeWork()
	}
	s.d.jobs.Done()
}

// nextDue returns when the next waiting job is due, or may start. It is the time to which a test moves a virtual clock
// next, so a time that is too early costs a dispatch for nothing, and one that is too late would skip work.
func (s *scheduler) nextDue() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.d.o.Now()
	due := min(s.hours.due(now.UnixMicro()), s.waiting.next(), s.queues.lineDue(now.UnixMicro()))
	if wait, limited := s.limits.NextDue(); limited {
		due = min(due, now.Add(max(wait, 0)+time.Microsecond-1).UnixMicro()) // rounded up: the room may come at any nanosecond
	}
	if due == never {
		return time.Time{}, false
	}
	return time.UnixMicro(due).UTC(), true
}
