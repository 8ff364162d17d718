// Package commit has the writer, the only goroutine that changes cases. It takes requests from a queue, runs several in
// one transaction of the store, and notifies observers after the commit.
//
//	Submit ─▶ queue ─▶ batch: one transaction of the store ─▶ commit ─▶ observers, outcomes
//	                     │  each request in a savepoint of its own: it fails alone
//	                     │    Tx: trees from memory or the store
//	                     │    kernel: agenda, callbacks ─▶ changes
//	                     └─   entries appended to the journal
//
// Only the queue and the index of items are shared between goroutines; everything else belongs to the writer.
//
// A batch of the requests A, B and C can fail in these ways:
//
//	B fails                      its savepoint is rolled back; A and C are committed
//	B aborts the transaction     A and C run again without B, in the next transaction
//	B meets another engine       A, B and C run again on current trees (stale.go, conflicts.go)
//	the database refuses the commit, since a constraint of the user's own tables is checked then:
//	                             A, B and C run again, each in its own transaction
//	the commit fails otherwise   all fail, and their trees are evicted
//
// If B fails because of what A did, and A is not committed, then B does not get its own error; see unconfirmed.go.
package commit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrClosed is returned by a closed engine.
var ErrClosed = errors.New("the engine is closed")

// Suspensions finds suspended workflows.
type Suspensions interface {
	// Suspension returns with what new cases of a workflow are suspended, as the transaction sees it; nil if they are not. It
	// is not changed.
	Suspension(tx *Tx, workflow string) (*state.Suspension, error)
}

// Options configure a writer. Fields are required unless their comment says otherwise.
type Options struct {
	Store       store.Store
	Definitions kernel.Definitions
	Suspensions Suspensions // nil suspends no workflow
	IDs         *workitem.Generator
	NewToken    func(root workitem.CaseID) (string, error)
	Now         func() time.Time
	Faults      *fault.Log

	CallbackTimeout time.Duration // of one callback of the user
	CacheCases      int           // the number of root cases that stay in memory

	Shared bool // other engines may change cases too; the transactions of the store are then [store.SharedTx]

	Holder Holder // nil if no other engine has the store open

	// Fenced is called on the goroutine of the writer when the store reports that this engine no longer owns its jobs,
	// before anything else is committed. It must not use the writer.
	Fenced func()
	// RootEnded is called in the transaction when a command has ended a root case.
	RootEnded func(tx *Tx, u *TreeWrite) error
	// GivenUp is called in the transaction when a command has given up work items that leave a dead letter.
	GivenUp func(tx *Tx, u *TreeWrite, items []kernel.GivenUp) error
	// Committed is called after each commit that appended something; nil measures nothing.
	Committed func(Size)
	// Active counts requests: it is called with +1 when one is queued, and with -1 when its outcome is known.
	Active func(int)
	// Lost receives every error of the store, and returns the error for callers: [ErrClosed] if another process has
	// taken over the database.
	Lost func(error) error
	// Closed returns the error of requests after the close.
	Closed func() error
	// Recovered is called when the store works again after a fault.
	Recovered func()
}

// Size is the size of what a commit appended to the journal.
type Size struct {
	Requests int // requests of the commit that appended something
	Entries  int // entries of the journal: at least one per tree that a request changed
	Changes  int // changes in these entries
	Bytes    int // encoded size of the changes
}

// Writer runs requests one after the other. Make one with [New] and start it with [Writer.Start]. Its methods are safe
// for concurrent use.
type Writer struct {
	o       Options
	queue   queue
	answers sync.Pool // channels for the outcomes of requests, see answer
	stopped chan struct{}

	// The fields below belong to the writer's goroutine.
	runner    *runner
	trees     *trees
	batch     []*Request // the memory of the last batch, for the next one
	begun     int        // how many requests have run
	lazyTimer *time.Timer
	observers []Observer
	extender  Extender
	conflicts conflicts
	machine   *kernel.Machine // of the last command, reused by the next one; may be nil
}

// New returns a writer that does nothing until it is started.
func New(o Options) *Writer {
	w := &Writer{o: o, stopped: make(chan struct{}), runner: newRunner(o.CallbackTimeout), trees: newTrees(o.CacheCases), conflicts: newConflicts(),
		lazyTimer: time.NewTimer(time.Hour)}
	w.lazyTimer.Stop()
	w.queue.init()
	return w
}

// keepMachine stores a machine for reuse by the next command. A machine that was lent to a callback is dropped: the
// command of an abandoned callback may end on the callback's goroutine, where even the assignment would be a data race.
func (w *Writer) keepMachine(m *kernel.Machine) {
	if !m.IsLent() {
		w.machine = m
	}
}

// Observe adds observers after the existing ones. Call it before [Writer.Start], or on the writer's goroutine.
func (w *Writer) Observe(observers ...Observer) { w.observers = append(w.observers, observers...) }

// Extend sets the extender. Call it before [Writer.Start].
func (w *Writer) Extend(x Extender) { w.extender = x }

// Start starts the writer's goroutine.
func (w *Writer) Start() { go w.write() }

// Close makes the writer refuse requests. Queued ones are still executed; [Writer.Wait] waits for them.
func (w *Writer) Close() { w.queue.close() }

// Wait waits until a closed writer has executed all queued requests.
func (w *Writer) Wait() { <-w.stopped }

// Stop ends the goroutine of callbacks. Call it after [Writer.Wait].
func (w *Writer) Stop() { w.runner.stop() }

// RootOf returns the root case of an item in memory.
func (w *Writer) RootOf(item workitem.ID) (workitem.CaseID, bool) { return w.trees.index.get(item) }

// IsLive reports whether a root case is in memory and has not ended. It needs no request and no query. If it reports
// true, the end of the case is still to come, so observers will be notified of it. If another engine ends the case,
// [Writer.Forget] drops it, or the next commit on it fails as stale.
func (w *Writer) IsLive(root workitem.CaseID) bool { return w.trees.index.isLive(root) }

// HasJob is like IsLive, and also requires a job that is no incident, so that the case is not stuck. Observers are also
// notified when a job becomes an incident.
func (w *Writer) HasJob(root workitem.CaseID) bool { return w.trees.index.hasJob(root) }

// write executes requests until the writer is closed and the queue is empty.
func (w *Writer) write() {
	defer close(w.stopped)
	for {
		r, over := w.queue.pop()
		if r == nil && !over {
			r = w.idle()
		}
		if r == nil {
			return
		}
		w.commit(r)
	}
}

// idleWait is the idle time before the writer calls the housekeeping of the store. It is longer than the pause between
// two commands of one caller, so that a sequence of commands is not delayed by housekeeping.
const idleWait = 2 * time.Millisecond

// idle waits for a request; nil if there will be none. When the queue has been empty for idleWait, it calls the
// housekeeping of the store, which writes the tables.
func (w *Writer) idle() *Request {
	w.lazyTimer.Reset(idleWait)
	defer w.lazyTimer.Stop()
	for {
		select {
		case <-w.queue.ready:
			if r, over := w.queue.pop(); r != nil || over {
				return r
			}
		case <-w.lazyTimer.C:
			err := w.o.Lost(w.o.Store.Idle(context.Background()))
			if errors.Is(err, ErrClosed) {
				continue
			}
			w.o.Faults.Note("housekeeping", err, "the store could not do its housekeeping; nothing is lost, and it is tried again")
		}
	}
}
