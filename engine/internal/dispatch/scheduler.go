package dispatch

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// scheduler knows every pending job of the workflows of this engine: when it is due, and who may run it. It holds a short
// entry for each, so that a hundred thousand sleeping cases cost megabytes, and one alarm, so that nothing polls.
//
// What is due goes to the writer in the order of (due time, creation), timers and claims together, under one lock: so the outcome
// of a case depends neither on goroutines nor on how many of them run at once. Jobs that wait for a worker are chosen by priority
// before that.
type scheduler struct {
	d        *Dispatcher
	mu       sync.Mutex
	waiting  calendar
	queues   map[string]*jobQueue
	running  int // jobs with workers, of all queues
	claims   claims
	parked   parking
	hours    hours
	batches  batches
	groups   map[workitem.JobID]*group // of jobs that are handed out, until they are claimed
	pool     pool
	alarm    turnAlarm
	on       bool
	stopping bool
	beat     func() bool // stops the timer of the next heartbeat; nil if none is arranged
	loops    loopGuard
	again    retries
	offered  []workitem.JobID // left for other engines by the command that is reported
	others   bool             // there are other engines
	next     []entry          // memory for what a turn hands out
	limits   limitGate
	paused   map[string]bool              // queues of which no job begins
	workers  map[string]int               // how many jobs of a queue run at a time, as it was set
	shared   exchange                     // of limits
	held     map[string]bool              // limits that cases hold over several tasks
	counted  map[workitem.JobID]*jobQueue // jobs that wait to begin, if queues are bounded

	rotations int64                    // how many there were
	turns     map[workitem.JobID]*turn // of jobs that are due and wait, by turns
}

// entry is a pending job, or a suspended one that time will wake.
type entry struct {
	due      int64 // microseconds since 1970
	job      workitem.JobID
	root     workitem.CaseID
	queue    *jobQueue // nil for what the writer does itself
	priority int32
	urgent   int64      // due, and earlier by the time that the priority is worth; 0 for all if jobs do not age
	cautious bool       // claim it durably before it runs: it may have ended a process before, or the claim failed
	hours    uint16     // of the function, see hours; 0 for always, and while that is not known
	faults   uint8      // how often in a row the store failed as it was to begin
	unread   bool       // what it needs of limits, and its hours, are not known
	ticket   *ticket    // what it needs of limits; nil for nothing, and while that is not known
	turn     *turn      // among the keys of its queue; nil if that has none
	batch    *lineKey   // with which others it is done; nil for none, and while that is not known
	step     *stepLease // of a run that goes on, for one of its steps; then the entry is no job
}

func (s *scheduler) init(d *Dispatcher) {
	s.d = d
	s.waiting = newCalendar()
	s.parked = make(parking)
	s.queues = make(map[string]*jobQueue)
	s.claims = newClaims()
	s.groups = make(map[workitem.JobID]*group)
	s.turns = make(map[workitem.JobID]*turn)
	if len(d.o.MaxPending) > 0 {
		s.counted = make(map[workitem.JobID]*jobQueue)
	}
	s.initLimits()
}

// start lets jobs run.
func (s *scheduler) start() {
	s.mu.Lock()
	s.on = true
	s.mu.Unlock()
	s.turn()
}

// stop claims no further job.
func (s *scheduler) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	s.alarm.stop()
	if s.beat != nil {
		s.beat()
	}
	s.pool.close()
	s.limits.Stop()
	for _, q := range s.queues {
		s.d.o.Active(-len(q.ready))
		q.ready = nil
	}
	s.stopRetries()
}

// committed takes up what a command did to jobs.
func (s *scheduler) committed(tree *state.Tree, changes []state.Change) {
	changed := false
	s.mu.Lock()
	for _, e := range changes {
		switch e := e.(type) {
		case *state.TaskMoved:
			s.taskMoved(tree, e)
		case *state.CaseEnded:
			s.caseEnded(tree, e.Case)
		case *state.JobOpened:
			changed = s.opened(tree, e.Job) || changed
		case *state.CaseSuspended:
			s.setAside(tree)
		case *state.CaseContinued:
			changed = s.goesOn(tree) || changed
		case *state.JobMoved:
			changed = s.moved(tree, e) || changed
		case *state.StepOpened, *state.StepMoved:
			s.claims.report(e)
		}
	}
	changed = changed || s.limits.readied
	s.mu.Unlock()
	if changed {
		s.turn()
	}
}

// opened takes up a new job, and reports whether there is more to hand out.
func (s *scheduler) opened(tree *state.Tree, j *state.Job) bool {
	if s.claims.isReserved(j.ID) || s.isOffered(j.ID) || s.loops.holds(j) {
		return false
	}
	return s.add(tree.Case(j.Case), j, false)
}

// moved takes up what a command did to a job that was there, and reports whether there is more to hand out.
func (s *scheduler) moved(tree *state.Tree, e *state.JobMoved) bool {
	s.parked.drop(tree.Root, e.Job)
	s.hours.drop(e.Job)
	s.leaveLine(e.Job)
	s.begunOrGone(e.Job)
	if e.To != state.JobWaiting {
		s.leavesTurn(e.Job)
	}
	s.waiting.wake(e.Job, s.d.o.Now().UnixMicro())
	goesOn := e.To == state.JobRunning && s.claims.of(e.Job).holds(e.Fence)
	if !goesOn {
		s.limits.Leave(e.Job)
		s.claims.interrupt(e)
	}
	switch {
	case e.To == state.JobPending || e.To == state.JobWaiting:
		c := tree.Case(e.Case)
		if c == nil || s.isOffered(e.Job) {
			return false
		}
		j := c.Job(e.Job)
		return j != nil && j.State == e.To && s.add(c, j, false)
	case !e.To.Live():
		s.drop(e)
	}
	return false
}

// add takes up one pending job of a case, or of one that is nil because it was not read. Jobs of workflows that this engine was not
// opened with are left for one that was.
func (s *scheduler) add(c *state.Case, j *state.Job, cautious bool) bool {
	if s.stopping || j.State != state.JobPending && (j.State != state.JobWaiting || j.Due.IsZero()) {
		return false
	}
	n := entry{due: j.Due.UnixMicro(), job: j.ID, root: j.Root, priority: shortPriority(j.Priority), cautious: cautious}
	if n.due > s.d.o.Now().UnixMicro() {
		n.cautious = true // it waits for its time anyway, and each of its calls should be counted
	}
	if j.Kind == state.JobRun || j.Kind == state.JobCall {
		n.queue = s.queueOf(j.Queue)
		if n.queue.limit <= 0 {
			return false
		}
		n.urgent = s.d.urgency(j)
		s.counts(j, n.queue)
		if c != nil {
			for _, m := range s.entriesOf(c, j, n) {
				s.put(m, j)
			}
			return true
		}
		n.unread = len(s.d.o.Limits) > 0 || s.d.haveHours || s.d.haveBatches || s.d.haveKeys
	}
	s.put(n, j)
	return true
}

// shortPriority keeps an entry short. Beyond two thousand million, priorities are as good as equal.
func shortPriority(p int) int32 { return int32(min(max(p, math.MinInt32), math.MaxInt32)) }

// takeUp is add for one job that nothing else reports.
func (s *scheduler) takeUp(j *state.Job) {
	s.mu.Lock()
	changed := s.add(nil, j, false)
	s.mu.Unlock()
	if changed {
		s.turn()
	}
}

// drop forgets a job that has ended: a running one's context is canceled, a waiting one is passed over when its time comes.
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

// turn hands out what is due, and sets the alarm for what is not.
func (s *scheduler) turn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on || s.stopping {
		return
	}
	now := s.d.o.Now().UnixMicro()
	for _, j := range s.loops.release(now) {
		s.add(nil, j, false)
	}
	s.hours.open(now, s.isReady)
	next := s.next[:0]
	for n, due := s.waiting.pop(now); due; n, due = s.waiting.pop(now) {
		if n.queue == nil {
			s.d.o.Active(1)
			next = append(next, n)
		} else {
			s.isReady(n)
		}
	}
	for again := true; again; again = s.limits.readied {
		s.limits.readied = false
		s.limits.passOn()
		s.limits.admitSteps()
		for _, q := range s.queues {
			q.promised = 0
			clear(q.promisedTo)
		}
		next = s.handOut(now, next)
	}
	s.setAlarm(now)
	slices.SortFunc(next, func(a, b entry) int { return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.job[:], b.job[:])) })
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

// wantsBack reports whether the worker of a job is to be given back when its function yields: nothing like it would begin now.
func (s *scheduler) wantsBack(n entry) bool {
	now := s.d.o.Now().UnixMicro()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping || s.hours.isClosed(&n, now) || n.queue != nil && s.paused[n.queue.name]
}

// hold notes that a worker has a job.
func (s *scheduler) hold(id workitem.JobID, r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims.begin(id, r)
	s.limits.Leave(id) // what else waits for it, see entriesOf
	s.keepBeating()
}

// freed notes that a claim has ended, and with it a worker, if it is the last of its group.
func (s *scheduler) freed(n entry, g *group, steps *journal, how outcome) {
	s.mu.Lock()
	s.claims.end(n.job, steps)
	if g == nil || g.isOver() {
		n.queue.running--
		s.running--
	}
	if n.unread {
		n.queue.reading--
	}
	if how == notBegun && s.turns[n.job] == n.turn { // it may have another one, see readNeeds
		s.leavesTurn(n.job)
	}
	s.limits.leave(n.ticket, how)
	more := len(n.queue.ready) > 0 || s.limits.readied || n.queue.lines.next(s.d.o.Now().UnixMicro()) != nil ||
		s.d.o.MaxRunning > 0 && s.mostUrgent(nil, s.d.o.Now().UnixMicro()) != nil
	s.mu.Unlock()
	if more {
		s.turn() // before this work is over: what is in lines is counted when it begins
	}
	s.d.o.Active(-1)
	if !more && s.d.o.TakeWork != nil {
		s.d.o.TakeWork()
	}
	s.d.jobs.Done()
}

// nextDue is when the next waiting job is due, or may begin.
func (s *scheduler) nextDue() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.d.o.Now()
	due := min(s.hours.due(now.UnixMicro()), s.waiting.next(), s.gathered(now.UnixMicro()))
	if wait, limited := s.limits.NextDue(); limited {
		due = min(due, now.Add(max(wait, 0)).UnixMicro())
	}
	if due == never {
		return time.Time{}, false
	}
	return time.UnixMicro(due).UTC(), true
}
