// Package fleet keeps an engine in touch with the others that have the same store open.
//
//	every second, or ten if all is quiet,            another engine commits
//	until something begins
//	  Tick: a heartbeat ────▶ store                    │ a hint, which may be lost
//	        ◀── what has changed, who has died         ▼
//	  Take: jobs that no engine holds ──▶ Work       Refresh: root cases that are waited for or worked on
//
// It changes nothing by itself: cases are changed by the writer, jobs are done by the dispatcher.
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
	page = 200 // jobs that are taken at a time

	// again is how long after a Tick that failed the next one is.
	again = time.Second

	// maxSkew is from which difference between the clocks on it is logged.
	maxSkew = time.Second
)

// Work is what does the jobs of this engine.
type Work interface {
	// Busy reports whether something runs, or is due soon.
	Busy() bool
	// Roots lists the root cases of running jobs.
	Roots() []workitem.CaseID
	// Filter is what is taken of the jobs that no engine holds.
	Filter() store.TakeFilter
	// Adopt takes up jobs that are this engine's from now on. It returns those that it could not take up, with the reason.
	Adopt(ctx context.Context, jobs []*state.Job) (left []*state.Job, err error)
	// Others says whether there are other engines.
	Others(are bool)
}

// Options are what a [Member] works with. All fields are needed.
type Options struct {
	Store  store.Fleet
	Work   Work
	Prints []string // of the definitions of this engine

	// Awaited lists the root cases that callers wait for something of.
	Awaited func() []workitem.CaseID
	// Refresh has the newest state of a root case compared with what this engine knows; [Member.Saw] is called with the outcome.
	Refresh func(root workitem.CaseID)
	// Forget drops root cases from memory.
	Forget func(roots []workitem.CaseID)
	// Moved is called when another engine may have committed something.
	Moved func()
	// Set is called when another engine may have changed settings, with the digest of those that there are; "" if that is not known.
	Set func(digest string)
	// Died is called when other engines have died.
	Died func()

	// Report takes the outcome of each exchange with the store.
	Report func(error)
	Now    func() time.Time
	Log    *slog.Logger
}

// Member is this engine as a member of a fleet. Make one with [New]; its methods are safe for concurrent use.
type Member struct {
	o     Options
	woken chan struct{}
	begun chan struct{} // something has begun here
	done  sync.WaitGroup

	mu         sync.Mutex
	seen       map[workitem.CaseID]int64 // positions that this engine knows, of the root cases that it has to know the changes of
	refreshing map[workitem.CaseID]bool  // they are being refreshed
	free       bool                      // there may be jobs to take
	left       []*state.Job              // they are this engine's and could not be taken up yet
	unsure     bool                      // the last attempt to take jobs failed, and may have made some this engine's
	others     int
	skewed     bool

	wanted bool // something has begun here since the last Tick
	pause  pause

	ticked    bool  // there was an exchange with the store
	head      int64 // of the journal, as of the last one; 0 if it was empty
	unsettled bool  // entries before the head could still appear then
}

// New makes a member that does nothing yet.
func New(o Options) *Member {
	return &Member{o: o, woken: make(chan struct{}, 1), begun: make(chan struct{}, 1), seen: make(map[workitem.CaseID]int64), refreshing: make(map[workitem.CaseID]bool)}
}

// Join announces this engine, and takes up what no engine holds.
func (m *Member) Join(ctx context.Context) error {
	if err := m.o.Store.Announce(ctx, m.o.Prints); err != nil {
		return err
	}
	if _, err := m.tick(ctx); err != nil {
		return err
	}
	return m.take(ctx)
}

// Start keeps in touch until the context ends.
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

// TakeWork has jobs taken, if there may be some.
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

// Committed implements commit.Observer: it notes what this engine did to root cases itself.
func (m *Member) Committed(tree *state.Tree, _ []state.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, watched := m.seen[tree.Root]; watched && !tree.Removed() {
		m.seen[tree.Root] = tree.Case(tree.Root).LastSeq
	}
	m.began()
}

// Began is called when a caller begins to wait. If all was quiet, the heartbeat that says how soon the next one is to be expected comes
// early then, as after a commit of this engine: the others notice sooner if that is its last one.
func (m *Member) Began() {
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

// Saw notes that a root case was refreshed, up to a position; 0 if that has failed.
func (m *Member) Saw(root workitem.CaseID, last int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refreshing, root)
	if _, watched := m.seen[root]; watched {
		m.seen[root] = last
	}
}

// await waits for the next thing to do, and does it; false if there is none.
func (m *Member) await(ctx context.Context, timer *time.Timer) bool {
	select {
	case <-ctx.Done():
		return false
	case hint, open := <-m.o.Store.Hints():
		if !open {
			return false
		}
		m.follow(ctx, hint, timer)
	case <-m.woken:
		m.report(m.take(ctx))
	case <-m.begun:
		m.pause.begin(timer)
	case <-timer.C:
		if m.pause.goesOn(timer) {
			break
		}
		next, err := m.tick(ctx)
		if errors.Is(err, store.ErrFenced) || err == nil {
			err = errors.Join(err, m.take(ctx))
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

// follow takes a hint.
func (m *Member) follow(ctx context.Context, hint store.Hint, timer *time.Timer) {
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
		m.o.Set("")
	}
	if hint.Free {
		m.setFree(true)
		m.report(m.take(ctx))
		if m.alone() {
			timer.Reset(0) // it is not, most likely
		}
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

// watched lists the root cases that this engine has to know the changes of, with the positions that it knows.
func (m *Member) watched() map[workitem.CaseID]int64 {
	roots := append(m.o.Work.Roots(), m.o.Awaited()...)
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[workitem.CaseID]int64, len(roots))
	known := make(map[workitem.CaseID]int64, len(roots))
	for _, root := range roots {
		seen[root], known[root] = m.seen[root], m.seen[root]
	}
	m.seen = seen
	return known
}

// refresh asks for the newest state of a root case, unless that is under way.
func (m *Member) refresh(root workitem.CaseID) {
	m.mu.Lock()
	asked := m.refreshing[root]
	m.refreshing[root] = true
	m.mu.Unlock()
	if !asked {
		m.o.Refresh(root)
	}
}

// tick sends a heartbeat and takes the news. It returns when the next one is due.
func (m *Member) tick(ctx context.Context) (time.Duration, error) {
	roots := m.watched()
	m.mu.Lock()
	m.wanted = false
	m.mu.Unlock()
	busy := m.pause.others || len(roots) > 0 || m.o.Work.Busy()
	m.pause = pause{}
	news, err := m.o.Store.Tick(ctx, store.Standing{Busy: busy, Roots: roots, Clock: m.o.Now()})
	if errors.Is(err, store.ErrFenced) {
		m.setFree(true)
		return 0, nil
	}
	if err != nil {
		return again, err
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
		m.o.Set(news.Settings) // a hint may have been lost
	}
	if news.Died > 0 {
		m.o.Died()
	}
	return news.Next, nil
}

// compare refreshes root cases that the store has at other positions than were known when it was asked. By now this engine may have changed them
// itself, and so have met what others did before, or have no further use for them: most are those of short jobs.
func (m *Member) compare(known map[workitem.CaseID]int64, changed []workitem.CaseID) {
	if len(changed) == 0 {
		return
	}
	now := m.watched()
	for _, root := range changed {
		if last, watched := now[root]; watched && last == known[root] {
			m.refresh(root)
		}
	}
}

// take takes jobs that no engine holds, as long as this engine has room for more. If the store fails after a job was taken, the job stays
// with this engine, and the next Tick tries to take it up again.
func (m *Member) take(ctx context.Context) error {
	m.mu.Lock()
	free, left := m.free || m.unsure, m.left
	m.left = nil
	m.mu.Unlock()
	if err := m.adopt(ctx, left); err != nil || !free {
		return err
	}
	for {
		f := m.o.Work.Filter()
		f.Max = page
		jobs, err := m.o.Store.Take(ctx, f)
		m.mu.Lock()
		m.unsure = err != nil
		m.mu.Unlock()
		if err != nil {
			return err
		}
		if err := m.adopt(ctx, jobs); err != nil {
			return err
		}
		if len(jobs) < page {
			m.setFree(len(f.Without) > 0) // of those there may be more
			return nil
		}
	}
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
