package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/internal/kernel"
	"github.com/tasq-dev/tasq/workitem"
)

// claim is a job on its way to a worker, and with it.
type claim struct {
	entry
	e      *Engine
	lease  time.Time
	ctx    context.Context // of the worker
	cancel func()
	work   *activities.Work
	steps  *journal    // nil until the claim was accepted
	lost   atomic.Bool // it was accepted and not committed
}

// errClaim is why a job is put off that a worker had begun.
var errClaim = fmt.Errorf("%w the claim", errCommit)

// errGone is the failure of a function that never returned, but ended its goroutine. It is caught in a deferred function,
// which is all that still runs then.
var errGone = &workitem.Failure{Code: workitem.CodePanic, Retryable: true,
	Message: "the function ended its goroutine, as runtime.Goexit and the FailNow of a test do; let it return an error"}

// claim has the writer make a job this engine's, and a worker do it. Nobody waits for the writer: so the job that a command
// has made is claimed at once after its commit, and without a worker that is woken twice.
//
// The worker goes on as soon as the claim is accepted; its commit comes with the next, unless the job may have killed a
// process before.
func (e *Engine) claim(n entry) {
	c := &claim{entry: n, e: e, lease: e.now().Add(e.cfg.Lease)}
	c.ctx, c.cancel = context.WithCancel(e.ctx)
	r := e.onOurJob(n, "job claim", !n.cautious, func(m *kernel.Machine) (err error) {
		c.work, err = m.Claim(n.job, e.cfg.Owner, c.lease)
		return err
	})
	r.ctx, r.ended = context.Background(), c.ended
	r.accepted = func() { c.accepted(r.tx) }
	if !e.enqueue(r) {
		c.ended(ErrClosed)
	}
}

func (c *claim) accepted(tx *Tx) {
	c.steps = c.e.newJournal(c.entry, c.work)
	c.e.recallClaim(tx, c.entry, c.work.Steps)
	c.e.sched.hold(c.job, &running{root: c.root, fence: c.work.Fence, lease: c.lease, cancel: c.cancel, steps: c.steps})
	if !c.cautious {
		c.e.sched.hands.do(c)
	}
}

func (c *claim) ended(err error) {
	switch {
	case err == nil && c.cautious:
		c.e.sched.hands.do(c)
	case err == nil:
	case c.steps != nil && !c.cautious:
		c.lost.Store(true)
		c.cancel() // what a worker does without its claim is not the engine's
	default:
		go c.refused(err)
	}
}

// refused ends a claim that no worker has heard of.
func (c *claim) refused(err error) {
	defer c.free()
	if errors.Is(err, kernel.ErrNotDue) {
		c.e.lookAgain(c.entry)
	} else {
		c.e.putOff(c.entry, err)
	}
}

// do runs the job and hands its result in.
func (c *claim) do() {
	defer c.free()
	defer c.steps.end()
	e, w := c.e, c.work
	returned := false
	defer func() {
		if !returned && e.ctx.Err() == nil {
			e.settle(c.entry, w, nil, workitem.FailureOf(errGone))
		}
	}()
	output, failure, suspended := e.run(c.ctx, e.byPrint[w.Case.Fingerprint], w, c.steps)
	returned = true
	if suspended {
		return
	}
	if failure != nil && e.ctx.Err() != nil {
		e.release(c.job, c.root, w.Fence) // the engine is closing: this was no failed attempt
		return
	}
	e.settle(c.entry, w, output, failure, c.steps.last...)
	if c.lost.Load() {
		e.putOff(c.entry, errClaim)
	}
}

func (c *claim) free() {
	c.cancel()
	var fence int64
	if c.work != nil {
		fence = c.work.Fence
	}
	c.e.sched.freed(c.entry, fence)
}
