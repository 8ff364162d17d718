// Package dispatch runs what is due. It has an entry for every pending job, claims due jobs in the order of their
// times, runs them in workers, renews their leases, and sends their results to the writer.
//
//	Committed ─▶ scheduler: heap by due time ─▶ queues by priority ─▶ claim ─▶ worker ─▶ settle
//	               ▲                              (Workers, Queues)     │         │         │
//	               └── tried again after a fault                        ▼         ▼         ▼
//	                                                                  writer    steps     writer
//
// A job passes these stages; the files are in this order:
//
//	due        calendar.go, due.go     waits in a heap for its time
//	ready      job_queue.go, fair.go   waits in its queue for a worker; hours.go, limits.go and gather.go can delay it
//	           queues.go, hand_out.go  gets a worker, as far as the numbers of workers and pauses admit
//	claimed    claim.go, extend.go     a command gives it to this engine, with a fence
//	running    package worker          its function runs; heartbeat.go renews its lease
//	settled    package worker          a command records the result
//
// The scheduler connects the parts of these stages, and has their lock. max_pending.go bounds what waits; limit_gate.go,
// exchange.go and holds.go are the limits.
//
// Where several engines have the store open, ownership.go decides which jobs belong to this one. status.go answers what waits, and why.
//
// The package changes no case itself: every change is a request to the writer. If the store fails in between, retries.go
// repeats the request.
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
	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// Options configure a dispatcher. Fields are required unless their comment says otherwise.
type Options struct {
	Context     context.Context // the parent of the contexts of jobs; canceled when the engine stops waiting for them
	Writer      *commit.Writer
	Store       store.Viewer
	Definitions *registry.Registry
	Clock       retry.Clock
	Now         func() time.Time
	Alarms      *alarm.Clock
	Log         *slog.Logger
	Faults      *fault.Log
	Retrier     fault.Retrier

	Limits     []limit.Limit  // the limits of all functions, with distinct names
	Rows       store.Limits   // the rows of shared limits
	Fleet      bool           // there may be other engines
	Queues     map[string]int // the number of workers of a queue, if it differs from Workers
	Workers    int
	MaxRunning int            // the maximum number of running jobs of all queues; no bound if it is not positive
	MaxPending map[string]int // the maximum number of waiting jobs of a queue before starts are refused; a queue that is not listed has no bound
	Aging      time.Duration  // the wait after which a job is as urgent as a new one with the next higher priority; 0 for never
	Steps      int            // the maximum number of running functions of steps; no bound if it is not positive
	Lease      time.Duration
	Owner      string // the name of the engine in its claims
	MaxPayload int

	// AroundJob and AroundStep are middleware around the functions of jobs and steps; nil for none.
	AroundJob  func(ctx context.Context, w *activities.Work, next func(context.Context) error) error
	AroundStep func(ctx context.Context, w *activities.Work, name string, next func(context.Context) error) error

	// Held lists the live jobs that this engine holds by the database, at most so many; nil if each job belongs to it.
	Held func(ctx context.Context, most int) ([]*state.Job, error)
	// Elsewhere counts the jobs of queues that wait and that this engine does not hold, up to the numbers given; nil if each job belongs to it.
	Elsewhere func(ctx context.Context, most map[string]int) (map[string]int, error)
	// TakeWork is called when a queue has a free worker and no work; nil if there are no other engines to take work from.
	TakeWork func()
	// Active counts work: it is called with +1 when work becomes due, and with -1 when it is done.
	Active func(int)
	// CallHandler calls the completion handler of a job, in the transaction.
	CallHandler func(tx *commit.Tx, u *commit.TreeWrite, j *state.Job) error
	// CheckPayload returns an error for a payload that is too large, or that some database would not store unchanged.
	CheckPayload func(what string, data json.RawMessage) error
}

// Dispatcher runs jobs and timers. Make one with [New]; it does nothing before [Dispatcher.Start]. Its methods are safe for
// concurrent use.
type Dispatcher struct {
	o      Options
	sched  scheduler
	runner *worker.Runner
	jobs   sync.WaitGroup
	look   roomLook

	haveHours   bool // some functions are restricted to time windows
	haveBatches bool // some tasks process their jobs in batches
}

// New returns a dispatcher. Register it as an observer of the writer.
func New(o Options) *Dispatcher {
	d := &Dispatcher{o: o, haveHours: o.Definitions.HaveHours(), haveBatches: o.Definitions.HaveBatches()}
	d.runner = worker.New(worker.Options{Context: o.Context, Writer: o.Writer, Definitions: o.Definitions, Now: o.Now, Alarms: o.Alarms, Log: o.Log,
		Faults: o.Faults, Retrier: o.Retrier, Limited: len(o.Limits) > 0, Steps: o.Steps, MaxPayload: o.MaxPayload,
		AroundJob: o.AroundJob, AroundStep: o.AroundStep, CheckPayload: o.CheckPayload})
	d.sched.init(d)
	return d
}

// Committed implements commit.Observer.
func (d *Dispatcher) Committed(tree *state.Tree, changes []state.Change) {
	d.sched.committed(tree, changes)
	d.runner.Committed(tree, changes)
}

// Start starts to claim jobs.
func (d *Dispatcher) Start() { d.sched.start() }

// Stop stops claiming jobs. Running ones continue; see [Dispatcher.Finish].
func (d *Dispatcher) Stop() { d.sched.stop() }

// Finish waits until no job runs: for the grace period, and then, after cancel has ended the contexts of the functions,
// for one more second. Jobs that still run after that are released, and the attempt does not count.
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

// Dispatch claims jobs and fires timers that are due now.
func (d *Dispatcher) Dispatch() { d.sched.dispatch() }

// TryAgain retries at once everything that met a fault of the store.
func (d *Dispatcher) TryAgain() { d.sched.tryAll() }

// NextDue returns when the next waiting job is due; false if there is none.
func (d *Dispatcher) NextDue() (time.Time, bool) { return d.sched.nextDue() }

// Runaway returns an error that describes a loop which takes no time; nil if there is none. See loopGuard.
func (d *Dispatcher) Runaway() error { return d.sched.runaway() }

// onLoadedJob returns a request that runs a command on the tree of a job. It fails for a job for which this engine lacks a definition.
func (d *Dispatcher) onLoadedJob(n entry, command string, f func(*kernel.Machine) error) *commit.Request {
	return &commit.Request{Run: func(tx *commit.Tx) error {
		u, err := tx.Open(n.root)
		if err != nil {
			return err
		}
		if c, _ := u.Tree.Job(n.job); c != nil && d.lacks(u.Tree, c) {
			return registry.ErrNotLoaded
		}
		return tx.Internal(u, command, f)
	}}
}

// lacks reports whether this engine was opened without a definition that a job of a case needs. The end of the job may be that
// of the case, which continues the cases above: without their definitions, the function would run, and its result
// could not be stored.
func (d *Dispatcher) lacks(t *state.Tree, c *state.Case) bool {
	for above := range t.Chain(c) {
		if d.o.Definitions.Definition(above.Fingerprint) == nil {
			return true
		}
	}
	return false
}
