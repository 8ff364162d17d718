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
	"github.com/tasq-dev/tasq/workitem"
)

// claim is a job on its way to a worker, and with it.
type claim struct {
	entry
	d      *Dispatcher
	lease  time.Time
	ctx    context.Context // of the worker
	cancel context.CancelCauseFunc
	work   *activities.Work
	steps  *journal         // nil until the claim was accepted
	group  *group           // with which the job is done; nil if it is done alone
	lost   atomic.Bool      // it was accepted and not committed
	latest *activities.Work // what the writer was given last, nil if the item ended as it started; work is what the worker has

	outcome outcome // for the limits of the job

	plain   bool  // see startsPlainly
	refused error // why the process did not let it begin in the transaction that made it due
}

// errGone is the failure of a function that never returned, but ended its goroutine. It is caught in a deferred function,
// which is all that still runs then.
var errGone = &workitem.Failure{Code: workitem.CodePanic, Retryable: true,
	Message: "the function ended its goroutine, as runtime.Goexit and the FailNow of a test do; let it return an error"}

var errEndedAtStart = errors.New("the item ended as it started, in a transaction that was done anew")

// claim has the writer make a job this engine's, and a worker do it. No caller waits for the writer: so the job that a command
// has made is claimed at once after its commit, and without a worker that is woken twice.
//
// The worker goes on as soon as the claim is accepted; its commit comes with the next, unless the job may have killed a
// process before.
func (d *Dispatcher) claim(n entry) {
	c := &claim{entry: n, d: d, lease: d.o.Now().Add(d.o.Lease)}
	if n.batch != nil {
		c.group = d.sched.groups[n.job]
		delete(d.sched.groups, n.job)
	}
	c.ctx, c.cancel = context.WithCancelCause(d.o.Context)
	r := d.onLoadedJob(n, "job claim", !n.cautious, func(m *kernel.Machine) (err error) {
		c.latest, err = m.Claim(n.job, d.o.Owner, c.lease)
		switch {
		case err != nil || c.work == nil:
			return err
		case c.latest == nil: // done again, it took another way than the one by which the worker began: it is claimed again
			return errEndedAtStart
		case c.latest.Fence != c.steps.fence.Load(): // another engine had the job since the worker began
			return kernel.ErrLeaseLost
		}
		return nil
	})
	if n.unread {
		claim := r.Run
		r.Run = func(tx *commit.Tx) error {
			if err := d.readNeeds(tx, &n); err != nil {
				return err
			}
			return claim(tx)
		}
	}
	r.Ended, r.Accepted = c.ended, c.accepted
	if !d.o.Writer.Send(r) {
		if c.group != nil {
			c.group.decided(c, false)
		}
		go c.free() // the scheduler is locked
	}
}

// accepted has a worker begin. It is called again if the transaction was undone by another request and the claim is done again:
// the worker goes on then, since the job is as it was, so its fence is the same.
func (c *claim) accepted(tx *commit.Tx) {
	if c.latest == nil {
		return
	}
	if c.steps != nil {
		tx.CacheSteps(c.root, c.job, c.latest.Steps)
		return
	}
	c.work = c.latest
	c.steps = c.d.newJournal(c.entry, c.work, c.cancel)
	tx.CacheSteps(c.root, c.job, c.work.Steps)
	c.d.sched.hold(c.job, &running{root: c.root, lease: c.lease, cancel: c.cancel, steps: c.steps})
	if !c.cautious {
		c.d.sched.pool.do(c)
	}
}

func (c *claim) ended(err error) {
	begins := err == nil && c.work != nil
	switch {
	case begins && c.group != nil:
		c.group.decided(c, true)
	case begins && c.cautious:
		c.d.sched.pool.do(c)
	case begins:
	case c.steps != nil && !c.cautious:
		c.lost.Store(true)
		c.cancel(nil) // what a worker does without its claim is not the engine's
	default: // no worker has it
		c.d.notBegun(c.entry, err)
		if c.group != nil {
			c.group.decided(c, false)
		}
		c.free()
	}
}

// do runs the job and hands its result in.
func (c *claim) do() {
	defer c.free()
	defer c.steps.end()
	if c.group != nil {
		defer c.group.leave(c.job)
	}
	d := c.d
	if !d.sched.begins(c.ticket) {
		d.release(c.job, c.root, c.steps)
		return
	}
	d.sched.reserveStep(c.steps)
	defer d.sched.leaveSteps(c.steps)
	c.outcome = failed // unless it returns
	ended := false
	defer func() {
		if !ended && d.o.Context.Err() == nil {
			d.settle(c.steps, nil, workitem.FailureOf(errGone))
		}
	}()
	output, failure, how := c.run()
	ended = true
	if failure == nil {
		c.outcome = succeeded
	}
	switch {
	case how == suspended:
	case how == yielded:
		d.yield(c.steps)
	case failure != nil && d.o.Context.Err() != nil:
		d.release(c.job, c.root, c.steps) // the engine is closing: this was no failed attempt
	default:
		d.settle(c.steps, output, failure)
	}
}

// run does the job, unless it needs of a limit what that does not have.
func (c *claim) run() (output json.RawMessage, failure *workitem.Failure, how ending) {
	if c.ticket != nil && c.ticket.Err != nil {
		return nil, workitem.FailureOf(c.ticket.Err), returned
	}
	ctx := c.ctx
	if c.group != nil {
		ctx = context.WithValue(ctx, groupKey{}, c.group)
	}
	return c.d.run(ctx, c.d.o.Definitions.Definition(c.work.Case.Fingerprint), c.work, c.steps)
}

// free ends a claim, whatever became of it. A job that was begun and whose claim was lost is due as before.
func (c *claim) free() {
	c.cancel(nil)
	if c.lost.Load() {
		c.d.sched.tryAgain(c.entry)
	}
	c.d.sched.freed(c.entry, c.group, c.steps, c.outcome)
}
