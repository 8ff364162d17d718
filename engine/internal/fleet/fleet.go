// Package fleet coordinates an engine with the other engines that have the same store open: it sends heartbeats, takes
// over jobs without an owner, and notices what other engines have committed.
//
//	every second, or ten while all engines are idle   another engine commits
//	  Tick: a heartbeat ────▶ store                     │ a hint, which may be lost
//	        ◀── changed cases, dead engines             ▼
//	  Take: jobs that no engine owns ──▶ Work         Refresh: root cases that callers or jobs of this engine need
//
// Hints only save time: whatever a lost hint would have said, the next Tick finds. The package changes no cases and
// runs no jobs; the writer and the dispatcher do.
package fleet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

const (
	takeLimit = 200 // the most jobs taken at a time

	// retryWait is the wait after a failed Tick.
	retryWait = time.Second

	// maxSkew is the difference between the clocks of engine and store from which on it is logged.
	maxSkew = time.Second
)

// Work runs the jobs of this engine; the dispatcher implements it.
type Work interface {
	// Busy reports whether a job runs, or is due soon.
	Busy() bool
	// Roots returns the root cases of running jobs.
	Roots() []workitem.CaseID
	// Filters selects the jobs without an owner that this engine can run now. A filter without Max has no bound. full
	// reports whether the filters leave out jobs that it can run later.
	Filters() (filters []store.TakeFilter, full bool)
	// Adopt schedules jobs that this engine has taken. It returns those that it could not schedule, with the reason.
	Adopt(ctx context.Context, jobs []*state.Job) (left []*state.Job, err error)
	// CountWaiting counts the jobs that wait in queues with a bound, and that this engine does not own.
	CountWaiting(ctx context.Context) error
	// Unknown returns those of some due jobs that neither wait nor run here.
	Unknown(jobs []*state.Job) []*state.Job
	// Rejoined is called after the others took this engine for dead, and it has joined them anew.
	Rejoined()
	// Others sets whether there are other engines.
	Others(are bool)
}

// Options configure a [Member]. All fields are required.
type Options struct {
	Store        store.Fleet
	Work         Work
	Fingerprints []string // the fingerprints of the definitions of this engine

	// Awaited returns the root cases for which callers wait.
	Awaited func() []workitem.CaseID
	// Refresh starts to load the newest state of a root case; [Member.Refreshed] is called with the outcome.
	Refresh func(root workitem.CaseID)
	// Forget drops root cases from memory.
	Forget func(roots []workitem.CaseID)
	// Moved is called when another engine may have committed something.
	Moved func()
	// SettingsChanged is called when another engine may have changed settings, with the digest of the current ones; ""
	// if it is not known.
	SettingsChanged func(digest string)
	// Died is called when other engines have died.
	Died func()

	// Report receives the outcome of each call of the store.
	Report func(error)
	Now    func() time.Time
	Log    *slog.Logger
}

// Member is this engine as a member of a fleet. Make one with [New]; its methods are safe for concurrent use.
type Member struct {
	o     Options
	woken chan struct{}
	begun chan struct{} // see WaitBegan
	done  sync.WaitGroup

	mu         sync.Mutex
	seen       map[workitem.CaseID]int64 // the last known position of each root case that this engine has to follow
	refreshing map[workitem.CaseID]bool  // the root cases with a Refresh in progress
	free       bool                      // there may be jobs to take
	left       []*state.Job              // jobs that this engine has taken and could not schedule yet
	unsure     bool                      // the last Take failed, but may have been committed: then this engine owns jobs that it does not know
	others     int                       // the number of other engines
	skewed     bool                      // the skew of the clocks was logged

	owned  ownedJobs // used by the goroutine of Start only
	wanted bool      // a commit or a wait has begun here since the last Tick
	pause  pause

	ticked    bool  // a Tick has succeeded
	head      int64 // the last position of the journal at that Tick; 0 if the journal was empty
	unsettled bool  // transactions were open at that Tick whose entries may appear before head
}

// New returns a member that does nothing until Join and Start.
func New(o Options) *Member {
	return &Member{o: o, woken: make(chan struct{}, 1), begun: make(chan struct{}, 1), seen: make(map[workitem.CaseID]int64), refreshing: make(map[workitem.CaseID]bool)}
}

// Join announces this engine to the store, and takes jobs without an owner.
func (m *Member) Join(ctx context.Context) error {
	if err := m.o.Store.Announce(ctx, m.o.Fingerprints); err != nil {
		return err
	}
	if _, err := m.tick(ctx); err != nil {
		return err
	}
	if err := m.take(ctx); err != nil {
		return err
	}
	return m.o.Work.CountWaiting(ctx)
}

// Start sends heartbeats and handles hints until the context ends.
func (m *Member) Start(ctx context.Context) {
	m.done.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for m.await(ctx, timer) {
		}
	})
}

// Wait waits until the member has stopped, after the end of its context.
func (m *Member) Wait() { m.done.Wait() }

// TakeWork starts to take jobs, if there may be some. The dispatcher calls it when it has room for more.
func (m *Member) TakeWork() {
	m.mu.Lock()
	free := m.free
	m.mu.Unlock()
	if free {
		m.wake()
	}
}

func (m *Member) wake() {
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// Committed implements commit.Observer. It advances the known position of the root case, so that the next Tick does not
// take this engine's own change for one of another engine.
func (m *Member) Committed(tree *state.Tree, _ []state.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, watched := m.seen[tree.Root]; watched && !tree.Removed() {
		m.seen[tree.Root] = tree.Case(tree.Root).LastSeq
	}
	m.began()
}

// WaitBegan is called when a caller begins to wait. Like a commit, it ends a long pause early, so that the next
// heartbeat announces a short interval: the other engines detect the death of an engine by that interval, and should
// notice soon if this one dies while it works.
func (m *Member) WaitBegan() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began()
}

func (m *Member) began() {
	if m.wanted || m.others == 0 {
		return
	}
	m.wanted = true
	select {
	case m.begun <- struct{}{}:
	default:
	}
}

// await waits for the next signal and handles it. It reports false if the member has to stop.
func (m *Member) await(ctx context.Context, timer *time.Timer) bool {
	select {
	case <-ctx.Done():
		return false
	case hint, open := <-m.o.Store.Hints():
		if !open {
			return false
		}
		m.handleHint(ctx, hint, timer)
	case <-m.woken:
		m.report(m.take(ctx))
	case <-m.begun:
		m.pause.begin(timer)
	case <-timer.C:
		if m.pause.hasSecondPart(timer) {
			break
		}
		next, err := m.tick(ctx)
		if errors.Is(err, store.ErrFenced) || err == nil {
			err = errors.Join(err, m.take(ctx), m.o.Work.CountWaiting(ctx), m.findUnknown(ctx))
		}
		m.report(err)
		m.pause.start(timer, next)
	}
	return ctx.Err() == nil
}

func (m *Member) report(err error) {
	if !errors.Is(err, context.Canceled) {
		m.o.Report(err)
	}
}

// handleHint handles a hint of another engine.
func (m *Member) handleHint(ctx context.Context, hint store.Hint, timer *time.Timer) {
	watched := m.watched()
	var others []workitem.CaseID
	for _, root := range hint.Roots {
		if _, is := watched[root]; is {
			m.refresh(root)
		} else {
			others = append(others, root)
		}
	}
	if len(others) > 0 {
		m.o.Forget(others)
	}
	if len(hint.Roots) > 0 {
		m.o.Moved()
		m.pause.noteOthers(timer)
	}
	if hint.Set {
		m.o.SettingsChanged("")
	}
	if hint.Free {
		m.setFree(true)
		if m.alone() {
			m.o.Work.Others(true) // the hint came from another engine, which shares the jobs
			timer.Reset(0)        // look again
		}
		m.report(m.take(ctx))
	}
}

func (m *Member) alone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.others == 0
}

func (m *Member) setFree(free bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = free
}

// tick sends a heartbeat and handles what the store returns. It returns the time until the next heartbeat. An engine
// that was fenced, because the others took it for dead, has lost its jobs and takes new ones.
func (m *Member) tick(ctx context.Context) (time.Duration, error) {
	roots := m.watched()
	m.mu.Lock()
	m.wanted = false
	m.mu.Unlock()
	busy := m.pause.others || len(roots) > 0 || m.o.Work.Busy()
	m.pause = pause{}
	news, err := m.o.Store.Tick(ctx, store.EngineState{Busy: busy, Roots: roots, Clock: m.o.Now()})
	if errors.Is(err, store.ErrFenced) {
		m.setFree(true)
		m.o.Work.Rejoined()
		return 0, nil
	}
	if err != nil {
		return retryWait, err
	}
	m.o.Work.Others(news.Others > 0)
	m.mu.Lock()
	moved := m.ticked && (news.Head != m.head || m.unsettled)
	m.ticked, m.head, m.unsettled, m.others, m.free = true, news.Head, !news.Settled, news.Others, news.Free
	skewed := news.Skew.Abs() > maxSkew && news.Others > 0 && !m.skewed
	m.skewed = m.skewed || skewed
	m.mu.Unlock()
	if news.Others > 0 {
		m.pause.soon = news.Soon
	}
	if skewed {
		m.o.Log.Warn("the clock of this engine differs from the database server's; its timers fire so much early or late", "by", news.Skew)
	}
	m.compare(roots, news.Changed)
	if moved {
		m.o.Moved()
	}
	if news.Others > 0 {
		m.o.SettingsChanged(news.Settings) // a hint may have been lost
	}
	if news.Died > 0 {
		m.o.Died()
	}
	return news.Next, nil
}

// take takes jobs without an owner while this engine has room for more. If the store fails after a job was taken, the
// job stays with this engine, and the next Tick tries to schedule it again.
func (m *Member) take(ctx context.Context) error {
	m.mu.Lock()
	free, left := m.free || m.unsure, m.left
	m.left = nil
	m.mu.Unlock()
	if err := m.adopt(ctx, left); err != nil || !free {
		return err
	}
	for more := true; more; {
		filters, full := m.o.Work.Filters()
		more = false
		for _, f := range filters {
			if f.Max <= 0 || f.Max > takeLimit {
				f.Max = takeLimit
			}
			n, err := m.takeSome(ctx, f)
			if err != nil {
				return err
			}
			more = more || n >= f.Max
		}
		if !more {
			m.setFree(full) // there may be more of those that were left out
		}
	}
	return nil
}

// takeSome takes the jobs that a filter selects, and returns how many.
func (m *Member) takeSome(ctx context.Context, f store.TakeFilter) (int, error) {
	jobs, err := m.o.Store.Take(ctx, f)
	m.mu.Lock()
	m.unsure = err != nil
	m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return len(jobs), m.adopt(ctx, jobs)
}

func (m *Member) adopt(ctx context.Context, jobs []*state.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	left, err := m.o.Work.Adopt(ctx, jobs)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = append(m.left, left...)
	return err
}
