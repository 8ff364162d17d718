package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// claim is the claim of a job: from the request to the writer until its worker is done.
type claim struct {
	entry
	d      *Dispatcher
	lease  time.Time
	ctx    context.Context // of the job's function
	cancel context.CancelCauseFunc
	work   *activities.Work
	steps  *worker.Journal  // nil until the writer has accepted the claim
	limits stepLimits       // of the steps of the run
	group  *group           // the batch that the job belongs to; nil if it has none
	lost   atomic.Bool      // accepted, but the commit failed
	latest *activities.Work // what the last run of the request returned, nil if the item ended when it was started; work is what the worker got

	outcome outcome // for the limits of the job

	withoutCallbacks bool  // see startsWithoutCallbacks
	refused          error // why the kernel refused the start in the transaction that opened the job
}

var errEndedAtStart = errors.New("the item ended as it started, in a transaction that was done anew")

// claim asks the writer to claim a job, and a worker to run it. It does not wait for the writer, so the job that a
// command has opened is claimed directly after its commit.
//
// The worker starts when the claim is accepted, before it is durable; the claim is committed together with the next
// request. If a crash loses such a claim, its attempt was not counted. So a job that may have crashed a process before
// (durableClaim) waits for the commit.
func (d *Dispatcher) claim(n entry) {
	// The lease counts from here: the time for which the request waits in the queue is a part of it.
	c := &claim{entry: n, d: d, lease: d.o.Now().Add(d.o.Lease)}
	if n.batch != nil {
		c.group = d.sched.groups[n.job]
		delete(d.sched.groups, n.job)
	}
	c.ctx, c.cancel = context.WithCancelCause(d.o.Context)
	r := d.onLoadedJob(n, "job claim", func(m *kernel.Machine) (err error) {
		c.latest, err = m.Leases().Claim(n.job, d.o.Owner, c.lease)
		switch {
		case err != nil || c.work == nil:
			return err
		case c.latest == nil: // the repeated request ended differently from the one that the worker started with: the job is claimed again
			return errEndedAtStart
		case c.latest.Fence != c.steps.Fence(): // another engine has had the job since the worker started
			return kernel.ErrLeaseLost
		}
		return nil
	})
	// The conditions are read in the transaction of the claim: a job without any, as most are, is claimed with one
	// request.
	if n.unread {
		claim := r.Run
		r.Run = func(tx *commit.Tx) error {
			if err := d.readNeeds(tx, &n); err != nil {
				return err
			}
			return claim(tx)
		}
	}
	run := r.Run
	r.Run = func(tx *commit.Tx) error {
		err := run(tx)
		if err != nil && !errors.Is(err, store.ErrUndone) { // then it runs again, or ends
			c.lose()
		}
		return err
	}
	r.Lazy, r.Ended, r.Accepted = !n.durableClaim, c.ended, c.accepted
	if !d.o.Writer.Send(r) {
		if c.group != nil {
			c.group.decided(c, false)
		}
		go c.free() // on another goroutine, since the scheduler is locked
	}
}

// accepted starts the worker. It is called again if another request made the transaction roll back and the claim runs
// again: the worker then just continues, since the state of the job, and so its fence, is the same.
func (c *claim) accepted(tx *commit.Tx) {
	if c.latest == nil {
		return
	}
	if c.steps != nil {
		tx.CacheSteps(c.root, c.job, c.latest.Steps)
		return
	}
	c.work = c.latest
	c.hold(tx)
	if !c.durableClaim {
		c.d.sched.pool.do(c)
	}
}

// hold records that this engine holds the job, in the transaction that has claimed it. The scheduler knows the claim before its
// commit is reported, or it would take the change of the job for one by another engine.
func (c *claim) hold(tx *commit.Tx) {
	c.limits = stepLimits{s: &c.d.sched, of: &c.entry}
	c.steps = c.d.runner.NewJournal(c.root, c.work, &c.limits, c.cancel)
	tx.CacheSteps(c.root, c.job, c.work.Steps)
	c.d.sched.hold(c.job, &running{root: c.root, lease: c.lease, cancel: c.cancel, steps: c.steps})
}

// The worker of a claim that waits for its commit starts here, and any other has started in accepted.
func (c *claim) ended(err error) {
	begins := err == nil && c.work != nil
	switch {
	case begins && c.group != nil:
		c.group.decided(c, true)
	case begins && c.durableClaim:
		c.d.sched.pool.do(c)
	case begins:
	case c.steps != nil && !c.durableClaim:
		c.lose()
	default: // no worker has started
		// If the engine was declared dead before this claim was committed, the job may have been taken since then, under the number with
		// which the engine has joined anew. No other engine has it, so it is claimed again.
		if c.steps != nil && c.steps.IsLost() {
			c.lost.Store(true)
		} else {
			c.d.startFailed(c.entry, err)
		}
		if c.group != nil {
			c.group.decided(c, false)
		}
		c.free()
	}
}

// lose stops a worker that has started before its claim was committed, and refuses what it records: without a claim the engine must not use the
// result. The next claim has the same fence, since it follows the same one, and may be that of another engine:
//
//	this engine                                   another one
//	claim with fence 5: the worker starts
//	                                              claim with fence 5; COMMIT
//	commit: the case has changed; all of it runs
//	again: the claim is refused, and what the
//	worker records is not that of the other one
//
// So it is called when the claim is refused, and not only when that is known to be final: in a batch, the records of the worker follow the claim.
func (c *claim) lose() {
	if c.steps == nil || c.durableClaim {
		return
	}
	c.lost.Store(true)
	c.steps.Lose()
	c.cancel(nil)
}

// do runs the job and settles it with the result.
func (c *claim) do() {
	// The order of these matters: the run ends and leaves its batch before the worker is free for the next job.
	defer c.free()
	defer c.steps.End()
	if c.group != nil {
		defer c.group.batch.Leave(c.job)
	}
	d := c.d
	if !d.sched.beginWork(c.ticket) {
		d.runner.Release(c.steps)
		return
	}
	c.limits.reserve()
	defer c.limits.leave()
	c.outcome = failed // unless the function returns
	// It stays false if the function ends its goroutine, which runs only the deferred functions.
	ended := false
	defer func() {
		if !ended && d.o.Context.Err() == nil {
			d.runner.Settle(c.steps, nil, workitem.FailureOf(worker.ErrExited))
		}
	}()
	output, failure, how := c.run()
	ended = true
	if failure == nil {
		c.outcome = succeeded
	}
	switch {
	case how == worker.Suspended:
	case how == worker.Yielded:
		d.runner.Yield(c.steps)
	case failure != nil && d.o.Context.Err() != nil:
		d.runner.Release(c.steps) // the engine closes, so the attempt does not count as failed
	default:
		d.runner.Settle(c.steps, output, failure)
	}
}

// run calls the function of the job, unless a grant of a limit has expired.
func (c *claim) run() (output json.RawMessage, failure *workitem.Failure, how worker.Ending) {
	if c.ticket != nil && c.ticket.Err != nil {
		return nil, workitem.FailureOf(c.ticket.Err), worker.Returned
	}
	ctx := c.ctx
	if c.group != nil {
		ctx = c.group.batch.NewContext(ctx)
	}
	var taken limit.Taken
	if c.ticket != nil {
		taken = jobLease{c.d, c.ticket}
	}
	return c.d.runner.Run(ctx, c.d.o.Definitions.Definition(c.work.Case.Fingerprint), c.steps, taken, func() bool { return c.d.sched.mustRelease(c.entry) })
}

// free ends a claim. A job whose claim was lost is due again.
func (c *claim) free() {
	c.cancel(nil)
	if c.lost.Load() {
		c.d.sched.tryAgain(c.entry)
	}
	c.d.sched.endClaim(c.entry, c.group, c.steps, c.outcome)
}
