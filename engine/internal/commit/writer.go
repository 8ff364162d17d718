// Package commit has the one goroutine that changes cases: the writer. It takes requests from a queue, runs each in a
// transaction that several share, and reports to observers what is durable.
//
//	Submit ─▶ queue ─▶ batch: one transaction of the store ─▶ commit ─▶ observers, outcomes
//	                     │  each request in a savepoint of its own: it fails alone
//	                     │    Tx: trees from memory or the store
//	                     │    kernel: agenda, callbacks ─▶ changes
//	                     └─   entries appended to the journal
//
// All that is here belongs to the writer's goroutine, but for the queue and the index of items.
package commit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrClosed is the error of what a closed engine refuses.
var ErrClosed = errors.New("the engine is closed")

// Options are what a writer works with. All fields are needed.
type Options struct {
	Store       store.Store
	Definitions kernel.Definitions
	IDs         *workitem.Generator
	NewToken    func(root workitem.CaseID) (string, error)
	Now         func() time.Time
	Faults      *fault.Log

	CallbackTimeout time.Duration // of one callback of the user's
	CacheCases      int           // how many root cases stay in memory

	Shared bool // other engines may change cases, too; the transactions of the store are then [store.SharedTx]

	Holder Holder // decides about jobs; nil if no other engine has the store open

	// Fenced is called on the goroutine of the writer when the store says that this engine holds its jobs no longer, before anything else is
	// committed. It must not use the writer.
	Fenced func()
	// RootEnded is called in the transaction when a command has ended a root case.
	RootEnded func(tx *Tx, u *TreeWrite) error
	// GivenUp is called in the transaction when a command has given up work items that leave a dead letter.
	GivenUp func(tx *Tx, u *TreeWrite, items []kernel.GivenUp) error
	// Committed is called after each commit that appended something; nil measures nothing.
	Committed func(Size)
	// Active counts requests that are under way: +1 as one is queued, -1 when its outcome is known.
	Active func(int)
	// Lost sees every error of the store, and returns what callers get instead: [ErrClosed] if the database was taken away.
	Lost func(error) error
	// Closed is the error of a request that comes too late.
	Closed func() error
	// Recovered is called when the store works again after a fault.
	Recovered func()
}

// Size is how much a commit appended to the journal.
type Size struct {
	Requests int // that share the commit and appended something
	Entries  int // of the journal: one for each tree of cases that a request changed
	Changes  int // in the entries
	Bytes    int // of the changes, as the journal keeps them
}

// Writer runs requests, one after the other. Make one with [New] and start it with [Writer.Start]. Its methods are safe for
// concurrent use.
type Writer struct {
	o       Options
	queue   queue
	answers sync.Pool // channels for the outcomes of requests, see answer
	stopped chan struct{}

	// What follows is for the writer's goroutine alone.
	runner    *runner
	trees     *trees
	batch     []*Request // kept for its memory
	patience  *time.Timer
	observers []Observer
	extender  Extender
	conflicts conflicts
	machine   *kernel.Machine // of a command that is over, for the next one; nil for none
}

// New makes a writer.
func New(o Options) *Writer {
	w := &Writer{o: o, stopped: make(chan struct{}), runner: newRunner(o.CallbackTimeout), trees: newTrees(o.CacheCases), conflicts: make(conflicts),
		patience: time.NewTimer(time.Hour)}
	w.patience.Stop()
	w.queue.init()
	return w
}

// keep keeps a machine for the next command. One that was lent is not even noted: its command may end on the goroutine of a callback that was
// left behind, beside that of the writer.
func (w *Writer) keep(m *kernel.Machine) {
	if !m.IsLent() {
		w.machine = m
	}
}

// Observe has observers learn of each commit, after those that do already. Call it before [Writer.Start], or on the writer's
// goroutine.
func (w *Writer) Observe(observers ...Observer) { w.observers = append(w.observers, observers...) }

// Extend has an extender add to requests. Call it before [Writer.Start].
func (w *Writer) Extend(x Extender) { w.extender = x }

// Start starts the writer's goroutine.
func (w *Writer) Start() { go w.write() }

// Close refuses further requests. Those that are queued are done; [Writer.Wait] waits for them.
func (w *Writer) Close() { w.queue.close() }

// Wait waits until a closed writer has done all that was queued.
func (w *Writer) Wait() { <-w.stopped }

// Stop ends the goroutine of callbacks, once the writer has ended.
func (w *Writer) Stop() { w.runner.stop() }

// RootOf finds the root case of an item that is in memory.
func (w *Writer) RootOf(item workitem.ID) (workitem.CaseID, bool) { return w.trees.index.get(item) }

// GoesOn reports whether a root case is known to go on, without a request: what ends it is reported to the observers later. It is false
// also for a case that is not in memory. If another engine ends the case, [Writer.Forget] is called, or the next commit on it finds out.
func (w *Writer) GoesOn(root workitem.CaseID) bool { return w.trees.index.goesOn(root) }

// HasJob reports, like GoesOn, whether a root case is known to go on with a job that is no incident, so that it is not stuck. A job that is given
// up is reported to the observers, too.
func (w *Writer) HasJob(root workitem.CaseID) bool { return w.trees.index.hasJob(root) }

// write ends when the writer is closed and the queue is empty.
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

// idleWait is how long the writer waits, with nothing to do, before it has the store do its housekeeping. A caller that
// sends one command after the other so never pays for it.
const idleWait = 2 * time.Millisecond

// idle waits for a request; nil if there will be none. It has the store write its tables once the queue has been empty for
// a moment.
func (w *Writer) idle() *Request {
	w.patience.Reset(idleWait)
	defer w.patience.Stop()
	for {
		select {
		case <-w.queue.ready:
			if r, over := w.queue.pop(); r != nil || over {
				return r
			}
		case <-w.patience.C:
			err := w.o.Lost(w.o.Store.Idle(context.Background()))
			if errors.Is(err, ErrClosed) {
				continue
			}
			w.o.Faults.Note("housekeeping", err, "the store could not do its housekeeping; nothing is lost, and it is tried again")
		}
	}
}
