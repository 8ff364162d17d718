package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
)

// limitModel is what random histories of limits are compared with. It notes each call of a function as the function begins and ends, and
// finds calls that the limits in force do not allow, jobs that wait although they could run, and jobs that overtake others.
//
// Times of calls are on an axis on which a clock that is set forward makes time pass, and one that is set back does not.
type limitModel struct {
	mu       sync.Mutex
	plan     limitPlan
	now      func() time.Time
	begin    time.Time
	setBack  time.Duration // how far the clock was set back, in all
	life     int           // of the engine: what a killed one still calls is not looked at
	opened   time.Time     // when this engine was opened, if there was another one before it
	queues   map[string]int
	paused   map[string]bool
	numbers  map[limitAt]int64 // what is set of limits and of keys
	since    []map[limitAt]int64
	held     map[string]bool // queues, and keys of them, that were paused at some time since the last look
	stopped  map[string]bool // those that have been paused since before the last look
	accounts map[limitAt]*limitAccount
	runs     []*plannedRun
	calls    []*plannedRun // of code outside of jobs
	lanes    map[string]*plannedRun
	wrong    []string
	noted    chan struct{} // has an element after something was noted
}

// limitAt is a limit, or one of its keys.
type limitAt struct{ limit, key string }

type limitAccount struct {
	used  int64 // slots
	calls []limitCall
}

type limitCall struct {
	at         time.Duration
	n, allowed int64
}

type runState int

const (
	waits runState = iota
	runs
	over
)

// plannedRun is a run of a function, or a call of code outside of jobs, which has takes of its own. Its place in the order is unknown after an engine has ended while it ran, and after it slept.
type plannedRun struct {
	in       planInput
	fn       int
	priority int
	state    runState
	due      time.Time
	anywhere bool
	failed   int
	beganNow bool // since the last look
	beganAt  time.Time
	canceled bool

	takes []planTake // of a call
	life  int        // of the engine that a call asks
	took  []limitAt  // by a call
}

// takesOf returns what a run or a call takes.
func (m *limitModel) takesOf(r *plannedRun) []planTake {
	if r.takes != nil {
		return r.takes
	}
	return m.plan.Funcs[r.fn].Takes
}

func newLimitModel(p limitPlan, now func() time.Time) *limitModel {
	m := &limitModel{plan: p, now: now, begin: now(), queues: make(map[string]int), paused: make(map[string]bool), held: make(map[string]bool), stopped: make(map[string]bool),
		numbers: make(map[limitAt]int64), accounts: make(map[limitAt]*limitAccount), lanes: make(map[string]*plannedRun), noted: make(chan struct{}, 1)}
	m.since = []map[limitAt]int64{{}}
	return m
}

func (m *limitModel) refuse(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf("at %s: ", m.axis())+fmt.Sprintf(format, args...))
}

// note ends a change of the model.
func (m *limitModel) note() {
	m.mu.Unlock()
	select {
	case m.noted <- struct{}{}:
	default:
	}
}

func (m *limitModel) axis() time.Duration { return m.now().Sub(m.begin) + m.setBack }

// set notes the number of a limit, or of one of its keys. Jobs that were admitted before may begin until the next look.
func (m *limitModel) set(at limitAt, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.plan.Limits, func(l limit.Limit) bool { return l.Name == at.limit })
	if m.numbers[at] = n; at.key != "" && n == m.number(m.numbers, m.plan.Limits[i], "") {
		delete(m.numbers, at) // the number of all keys is none of its own
	}
	now := make(map[limitAt]int64, len(m.numbers))
	for at, n := range m.numbers {
		now[at] = n
	}
	m.since = append(m.since, now)
}

func (m *limitModel) number(in map[limitAt]int64, l limit.Limit, key string) int64 {
	if n, ok := in[limitAt{l.Name, key}]; ok && key != "" {
		return n
	}
	if n, ok := in[limitAt{l.Name, ""}]; ok {
		return n
	}
	return l.N
}

// between returns the least and the largest number that a limit had since the last look.
func (m *limitModel) between(l limit.Limit, key string) (least, most int64) {
	least = m.number(m.since[0], l, key)
	most = least
	for _, in := range m.since[1:] {
		n := m.number(in, l, key)
		least, most = min(least, n), max(most, n)
	}
	return least, most
}

// started notes a run, which is due now.
func (m *limitModel) started(in planInput, fn, priority int) *plannedRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &plannedRun{in: in, fn: fn, priority: priority, due: m.now()}
	m.runs = append(m.runs, r)
	return r
}

// runningCall is a call of a function.
type runningCall struct {
	run  *plannedRun
	life int
	took []limitAt
}

// began notes that a function is called, and checks each of its limits.
func (m *limitModel) began(ctx context.Context, id, life int) *runningCall {
	m.mu.Lock()
	defer m.note()
	r := m.runs[id]
	c := &runningCall{run: r, life: life}
	if life != m.life {
		return c
	}
	f := m.plan.Funcs[r.fn]
	if r.state == runs {
		m.refuse("run %d is called while it runs", id)
	}
	r.state, r.beganNow, r.beganAt = runs, true, m.now()
	m.queues[f.Queue]++
	if n := m.queues[f.Queue]; n > m.plan.Workers {
		m.refuse("queue %q has %d jobs and %d workers", f.Queue, n, m.plan.Workers)
	}
	if m.isIn(m.stopped, r) {
		m.refuse("run %d begins in queue %q, which is paused for key %q", id, f.Queue, r.in.Key)
	}
	for _, t := range f.Takes {
		l := m.plan.Limits[t.Limit]
		key := t.key(r.in)
		if t.Mode == takeAny {
			key = limit.KeyOf(ctx, l.Name)
		}
		c.took = append(c.took, limitAt{l.Name, key})
		m.take(r, l, key, t.N)
	}
	if f.Lane {
		if other := m.lanes[r.in.Key]; other != nil && other != r {
			m.refuse("run %d begins in lane %s, which run %d holds", id, r.in.Key, other.in.ID)
		}
		m.lanes[r.in.Key] = r
	}
	return c
}

// take checks that a limit admits a call, and counts it.
func (m *limitModel) take(r *plannedRun, l limit.Limit, key string, n int64) {
	at := limitAt{l.Name, key}
	a := m.accounts[at]
	if a == nil {
		a = new(limitAccount)
		m.accounts[at] = a
	}
	_, allowed := m.between(l, key)
	switch l.Algorithm {
	case limit.CircuitBreaker:
	case limit.Slots:
		if a.used+n > allowed {
			m.refuse("%s takes %d of %v, key %q, of which %d are in use and %d are allowed", r, n, l, key, a.used, allowed)
		}
		a.used += n
	default:
		a.calls = append(a.calls, limitCall{m.axis(), n, allowed})
		m.checkWindows(r, l, key, a)
	}
}

// checkWindows checks the windows that end with the last call.
func (m *limitModel) checkWindows(r *plannedRun, l limit.Limit, key string, a *limitAccount) {
	last := len(a.calls) - 1
	now, sum, most := a.calls[last].at, int64(0), int64(1)
	for _, f := range m.plan.Funcs {
		for _, t := range f.Takes {
			most = max(most, t.N)
		}
	}
	widest := l
	for i := last; i >= 0 && now-a.calls[i].at < 2*l.Per; i-- {
		widest.N = max(widest.N, a.calls[i].allowed)
	}
	bound := widest.AnyWindow(most)
	if l.Algorithm == limit.SlidingWindow {
		bound = a.calls[last].allowed // whatever it was before: what was admitted counts
	}
	for i := last; i >= 0 && now-a.calls[i].at < l.Per; i-- {
		sum += a.calls[i].n
	}
	if sum > bound {
		m.refuse("%s takes %d of %v, key %q: %d in the window, %d are allowed: %v", r, a.calls[last].n, l, key, sum, bound, a.calls)
	}
}

// fails reports whether a call is to fail, and counts it.
func (m *limitModel) fails(c *runningCall) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.run.failed >= c.run.in.Fails {
		return false
	}
	c.run.failed++
	return true
}

// ended notes that a call is over, and what becomes of the run.
func (m *limitModel) ended(c *runningCall, to runState, due time.Duration, anywhere bool) {
	m.mu.Lock()
	defer m.note()
	if c.life != m.life {
		return
	}
	r := c.run
	f := m.plan.Funcs[r.fn]
	m.queues[f.Queue]--
	for i, t := range f.Takes {
		if m.plan.Limits[t.Limit].Algorithm == limit.Slots {
			m.accounts[c.took[i]].used -= t.N
		}
	}
	if r.state = to; r.canceled {
		r.state = over
	}
	r.due, r.anywhere = m.now().Add(due), r.anywhere || anywhere
	if r.state == over && m.lanes[r.in.Key] == r {
		delete(m.lanes, r.in.Key)
	}
}

// cancel notes that a run is canceled. One that is called is over when it returns.
func (m *limitModel) cancel(r *plannedRun) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.canceled = true; r.state == waits {
		r.state = over
	}
	if m.lanes[r.in.Key] == r {
		delete(m.lanes, r.in.Key)
	}
}

// keyOfQueue names a key of a queue in the sets of what is paused.
func keyOfQueue(queue, key string) string { return queue + "/" + key }

// isIn reports whether the queue of a run is in a set, or its key there.
func (m *limitModel) isIn(set map[string]bool, r *plannedRun) bool {
	f := m.plan.Funcs[r.fn]
	return set[f.Queue] || f.Fair && set[keyOfQueue(f.Queue, r.in.Key)]
}

// pause notes that a queue, or a key of it, is paused or continues.
func (m *limitModel) pause(queue string, paused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paused[queue] = paused; paused {
		m.held[queue] = true
	} else {
		m.stopped[queue] = false
	}
}

// reopened notes that the engine has ended and another one has the database: what the first one counted is gone.
func (m *limitModel) reopened() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life, m.opened = m.life+1, m.now()
	clear(m.queues)
	for _, l := range m.plan.Limits {
		for at, a := range m.accounts {
			if at.limit != l.Name {
				continue
			}
			if a.used = 0; !l.InStore {
				a.calls = nil
			}
		}
	}
	for _, r := range m.calls {
		r.state = over
	}
	for _, r := range m.runs {
		if r.state == runs {
			r.state, r.due, r.anywhere = waits, m.now(), true
		}
		if r.canceled {
			r.state = over
		}
	}
}

// look is called when nothing happens any more without time: each job that waits must have a reason to.
func (m *limitModel) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.waiting() {
		if r.takes == nil {
			m.checkOrder(r)
		}
		if why := m.stranded(r); why != "" {
			m.refuse("%s", why)
		}
	}
	for _, r := range m.runs {
		r.beganNow = false
	}
	m.since = m.since[len(m.since)-1:]
	clear(m.held)
	for queue, paused := range m.paused {
		m.held[queue], m.stopped[queue] = paused, paused
	}
}

// waiting returns the runs and calls that wait and are neither early nor paused.
func (m *limitModel) waiting() (list []*plannedRun) {
	for _, r := range slices.Concat(m.runs, m.calls) {
		if r.state == waits && r.due.Before(m.now()) && (r.takes != nil || !m.isIn(m.held, r)) {
			list = append(list, r)
		}
	}
	return list
}

// await waits until none is stranded, for as long as most: a claim may wait a moment for its commit, and what the engine has admitted is noted a moment
// later. What is still stranded then is for look to report. Each look at the runs follows a call of settle.
func (m *limitModel) await(most time.Duration, settle func()) {
	late := time.After(most)
	for {
		settle()
		m.mu.Lock()
		stranded := slices.ContainsFunc(m.waiting(), func(r *plannedRun) bool { return m.stranded(r) != "" })
		m.mu.Unlock()
		if !stranded {
			return
		}
		select {
		case <-m.noted:
		case <-late:
			settle()
			return
		}
	}
}

// checkOrder requires that no later run of the function began while this one waits for the same limit. A clock that is set back gives what is started
// then an earlier time. An engine that is opened learns the keys of waiting jobs as it reads them, and a newer job of the same key may be in an
// earlier round by then.
func (m *limitModel) checkOrder(r *plannedRun) {
	f := m.plan.Funcs[r.fn]
	if m.setBack > 0 || r.anywhere || f.Fair || f.Lane || len(f.Takes) != 1 || !r.due.After(m.opened) && m.takesTurns(f.Queue) {
		return
	}
	t := f.Takes[0]
	if least, _ := m.between(m.plan.Limits[t.Limit], t.key(r.in)); least < t.N {
		return // it waits until the limit is raised, and others do not
	}
	for _, other := range m.runs {
		if other.beganNow && r.due.Before(other.beganAt) && other.fn == r.fn && t.key(other.in) == t.key(r.in) && !other.anywhere && other.failed == 0 &&
			cmp.Or(cmp.Compare(r.priority, other.priority), other.due.Compare(r.due)) > 0 {
			m.refuse("run %d, due %s with priority %d, waits, and run %d, due %s with priority %d, has begun", r.in.ID, r.due.Sub(m.begin), r.priority,
				other.in.ID, other.due.Sub(m.begin), other.priority)
		}
	}
}

// takesTurns reports whether some function of a queue has keys. Those without share one then.
func (m *limitModel) takesTurns(queue string) bool {
	return slices.ContainsFunc(m.plan.Funcs, func(f planFunc) bool { return f.Fair && f.Queue == queue })
}

// stranded says of a run or a call that it waits for one limit of the process which has room, unless it waits behind one that needs more. A run that
// slept as its engine was killed sleeps on.
func (m *limitModel) stranded(r *plannedRun) string {
	takes := m.takesOf(r)
	if f := m.plan.Funcs[r.fn]; r.anywhere || len(takes) > 1 || r.takes == nil && (f.Lane || m.queues[f.Queue] >= m.plan.Workers) {
		return ""
	}
	if len(takes) == 0 {
		return fmt.Sprintf("%s needs nothing, and waits", r)
	}
	l := m.plan.Limits[takes[0].Limit]
	if l.InStore || l.Algorithm != limit.Slots && l.Algorithm != limit.SlidingWindow {
		return ""
	}
	for _, key := range takes[0].keys(r.in) {
		room, _ := m.between(l, key)
		room -= m.usedOf(l, key)
		blocks := func(other *plannedRun) bool { return m.mayBlock(other, l, key, room) }
		if !slices.ContainsFunc(m.runs, blocks) && !slices.ContainsFunc(m.calls, blocks) {
			return fmt.Sprintf("%s waits for %d of %v, key %q, which has room for %d", r, takes[0].N, l, key, room)
		}
	}
	return ""
}

// usedOf is what counts of a limit now.
func (m *limitModel) usedOf(l limit.Limit, key string) (used int64) {
	a := m.accounts[limitAt{l.Name, key}]
	if a == nil {
		return 0
	}
	used = a.used
	for _, c := range a.calls {
		if m.axis()-c.at < l.Per {
			used += c.n
		}
	}
	return used
}

// mayBlock reports whether a run waits for a limit and needs more of it than it has, or something else too.
func (m *limitModel) mayBlock(r *plannedRun, l limit.Limit, key string, room int64) bool {
	takes := m.takesOf(r)
	if r.state != waits || !slices.ContainsFunc(takes, func(t planTake) bool {
		return m.plan.Limits[t.Limit].Name == l.Name && slices.Contains(t.keys(r.in), key)
	}) {
		return false
	}
	return len(takes) > 1 || r.takes == nil && m.plan.Funcs[r.fn].Lane || takes[0].N > room
}

// String names a run or a call in a message.
func (r *plannedRun) String() string {
	if r.takes != nil {
		return fmt.Sprint("call ", r.in.ID)
	}
	return fmt.Sprint("run ", r.in.ID)
}

// asked notes a call, which takes of limits outside of jobs.
func (m *limitModel) asked(in planInput, takes []planTake) *plannedRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	in.ID = len(m.calls)
	r := &plannedRun{in: in, due: m.now(), takes: append([]planTake{}, takes...), life: m.life}
	m.calls = append(m.calls, r)
	return r
}

// admitted notes that a call has acquired its limits, of key where any key would do, and checks each of them.
func (m *limitModel) admitted(r *plannedRun, key string) {
	m.mu.Lock()
	defer m.note()
	if r.life != m.life {
		return
	}
	r.state = runs
	for _, t := range r.takes {
		of := t.key(r.in)
		if t.Mode == takeAny {
			of = key
		}
		l := m.plan.Limits[t.Limit]
		r.took = append(r.took, limitAt{l.Name, of})
		m.take(r, l, of, t.N)
	}
}

// returned notes that a call releases its limits.
func (m *limitModel) returned(r *plannedRun) {
	m.mu.Lock()
	defer m.note()
	if r.life != m.life {
		return
	}
	r.state = over
	for i, t := range r.takes {
		if m.plan.Limits[t.Limit].Algorithm == limit.Slots {
			m.accounts[r.took[i]].used -= t.N
		}
	}
}

// left notes that a call has acquired nothing, because its patience or its engine has ended.
func (m *limitModel) left(r *plannedRun, err error, impatient bool) {
	m.mu.Lock()
	defer m.note()
	if r.state = over; !impatient && !errors.Is(err, engine.ErrClosed) {
		m.refuse("%s: %v", r, err)
	}
}
