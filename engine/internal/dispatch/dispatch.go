// Package dispatch does what is due: it knows every pending job, claims those that are due in the order of their times, runs them in
// workers, renews their leases, and hands their results to the writer.
//
//	Committed ─▶ scheduler: heap by due time ─▶ queues by priority ─▶ claim ─▶ worker ─▶ settle
//	               ▲                              (Workers, Queues)     │         │         │
//	               └── tried again after a fault                        ▼         ▼         ▼
//	                                                                  writer    steps     writer
//
// Everything that changes a case is a request to the writer; nothing here changes one.
package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/alarm"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// Options are what a dispatcher works with. All fields are needed.
type Options struct {
	Context     context.Context // of jobs; canceled when the engine closes for good
	Writer      *commit.Writer
	Store       store.Viewer
	Definitions *registry.Registry
	Clock       retry.Clock
	Now         func() time.Time
	Alarms      *alarm.Clock
	Log         *slog.Logger
	Faults      *fault.Log
	Retrier     fault.Retrier

	Limits     []limit.Limit  // that functions take of, each with a name of its own
	Rows       store.Limits   // where engines share limits
	Fleet      bool           // there may be other engines
	Queues     map[string]int // how many jobs of a queue run at a time, where it differs from Workers
	Workers    int
	MaxRunning int            // how many jobs run at a time, of all queues; 0 and less: no bound
	MaxPending map[string]int // how many jobs of a queue wait to begin when starts are refused; no bound for one that is not listed
	Aging      time.Duration  // how long a job waits until it is as urgent as a fresh one of the next priority; 0 is never
	Steps      int            // how many functions of steps run at a time; 0 and less: no bound
	Lease      time.Duration
	Owner      string // names the engine in its claims
	MaxPayload int

	// AroundJob and AroundStep surround the functions of jobs and of their steps; nil if nothing does.
	AroundJob  func(ctx context.Context, w *activities.Work, next func(context.Context) error) error
	AroundStep func(ctx context.Context, w *activities.Work, name string, next func(context.Context) error) error

	// TakeWork is called when a queue has a worker free and no work; nil if there are no other engines to take work from.
	TakeWork func()
	// Active counts what is under way: +1 as work becomes due, -1 when it is done.
	Active func(int)
	// CallHandler calls the completion handler that a job is for, in the transaction.
	CallHandler func(tx *commit.Tx, u *commit.TreeWrite, j *state.Job) error
	// CheckPayload refuses what is too large or is no JSON that every database keeps.
	CheckPayload func(what string, data json.RawMessage) error
}

// Dispatcher runs jobs and timers. Make one with [New]; it does nothing before [Dispatcher.Start]. Its methods are safe for
// concurrent use.
type Dispatcher struct {
	o        Options
	sched    scheduler
	attempts attemptLog
	slots    chan struct{} // one for each function of a step that runs; nil without a bound
	jobs     sync.WaitGroup

	haveHours   bool // a function may begin only while a window is open
	haveBatches bool // jobs of a task are done together

	haveKeys   bool            // functions have keys between which their queue takes turns
	fairQueues map[string]bool // those of which that is known
}

// New makes a dispatcher. It is to be an observer of the writer.
func New(o Options) *Dispatcher {
	d := &Dispatcher{o: o, attempts: attemptLog{log: o.Log, definitions: o.Definitions}, haveHours: o.Definitions.HaveHours(),
		haveBatches: o.Definitions.HaveBatches(), fairQueues: o.Definitions.FairQueues()}
	d.haveKeys = len(d.fairQueues) > 0
	if o.Steps > 0 {
		d.slots = make(chan struct{}, o.Steps)
	}
	d.sched.init(d)
	return d
}

// Committed implements commit.Observer.
func (d *Dispatcher) Committed(tree *state.Tree, changes []state.Change) {
	d.sched.committed(tree, changes)
	d.attempts.committed(tree, changes)
}

// Start lets jobs run.
func (d *Dispatcher) Start() { d.sched.start() }

// Stop claims no further job. Those that run go on; see [Dispatcher.Finish].
func (d *Dispatcher) Stop() { d.sched.stop() }

// Finish waits until no job runs any more: for the grace, and for a second after cancel, which ends their contexts. Those that
// run even then are given back, without an attempt counted.
func (d *Dispatcher) Finish(grace time.Duration, cancel func()) {
	done := make(chan struct{})
	go func() {
		d.jobs.Wait()
		close(done)
	}()
	wait := func(t time.Duration) bool {
		timer := time.NewTimer(t)
		defer timer.Stop()
		select {
		case <-done:
			return true
		case <-timer.C:
			return false
		}
	}
	if wait(grace) {
		return
	}
	d.o.Log.Warn("jobs are still running after the grace period; their contexts are canceled", "grace", grace)
	cancel()
	if !wait(time.Second) {
		d.releaseRunning()
	}
}

// Turn hands out what is due now.
func (d *Dispatcher) Turn() { d.sched.turn() }

// TryAgain has all that met a fault of the store tried again at once.
func (d *Dispatcher) TryAgain() { d.sched.tryAll() }

// NextDue is when the next waiting job is due; false if none is.
func (d *Dispatcher) NextDue() (time.Time, bool) { return d.sched.nextDue() }

// Runaway says which loop takes no time; nil if there is none. See loopGuard.
func (d *Dispatcher) Runaway() error { return d.sched.runaway() }

// Full is how many jobs run here at a time, of all queues, if as many do now; 0 if there is room, or no bound.
func (d *Dispatcher) Full() int {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	if !d.sched.full() {
		return 0
	}
	return d.o.MaxRunning
}

// Running is how many jobs of a queue are with workers.
func (d *Dispatcher) Running(queue string) int { return d.sched.runningOf(queue) }

// LimitOf is how many jobs of a queue run here at a time: 0 if this engine stops the queue, and less if it runs no jobs.
func (d *Dispatcher) LimitOf(queue string) int {
	d.sched.mu.Lock()
	defer d.sched.mu.Unlock()
	return d.sched.limitOf(queue)
}

// limitOf is how many jobs of a queue run here at a time: what was set, up to the larger number of the configuration. The lock is held.
func (s *scheduler) limitOf(queue string) int {
	defined := s.d.definedOf(queue)
	if n, set := s.workers[queue]; set && defined > 0 {
		return min(n, max(defined, s.d.o.Workers))
	}
	return defined
}

// definedOf is how many jobs of a queue run here at a time by the configuration: 0 if this engine stops the queue, and less if it runs no jobs.
func (d *Dispatcher) definedOf(queue string) int {
	if limit, listed := d.o.Queues[queue]; listed {
		return max(limit, 0)
	}
	return d.o.Workers
}

// onJob runs a kernel command on the tree of a job.
func (d *Dispatcher) onJob(n entry, command string, lazy bool, f func(*kernel.Machine) error) *commit.Request {
	return &commit.Request{Lazy: lazy, Run: func(tx *commit.Tx) error {
		u, err := tx.Open(n.root)
		if err != nil {
			return err
		}
		return tx.Internal(u, command, f)
	}}
}

// onLoadedJob is like onJob, and refuses a job of a workflow that this engine was not opened with.
func (d *Dispatcher) onLoadedJob(n entry, command string, lazy bool, f func(*kernel.Machine) error) *commit.Request {
	return &commit.Request{Lazy: lazy, Run: func(tx *commit.Tx) error {
		u, err := tx.Open(n.root)
		if err != nil {
			return err
		}
		if c, _ := u.Tree.Job(n.job); c != nil && d.o.Definitions.Definition(c.Fingerprint) == nil {
			return registry.ErrNotLoaded
		}
		return tx.Internal(u, command, f)
	}}
}
