package dispatch

import (
	"errors"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// Due work is sent to the writer as a request without a caller. This file handles requests that fail: after a fault of
// the store the request is repeated, work that the kernel refuses is postponed, and obsolete work is dropped.

// fire has the writer do what a due timer is for.
func (d *Dispatcher) fire(n entry) {
	r := d.onLoadedJob(n, "job fire", func(m *kernel.Machine) error { return m.Timers().Fire(n.job) })
	fire := r.Run
	r.Run = func(tx *commit.Tx) error {
		u, err := tx.Open(n.root)
		if err != nil {
			return err
		}
		_, j := u.Tree.Job(n.job)
		if err := fire(tx); err != nil || j.Kind != state.JobHandler {
			return err
		}
		return d.o.CallHandler(tx, u, j)
	}
	r.Ended = func(err error) {
		d.startFailed(n, err)
		d.o.Active(-1)
	}
	if !d.o.Writer.Send(r) {
		d.o.Active(-1)
	}
}

// startFailed decides what becomes of a due entry whose request ended so. It queues what there is to do and does not
// block.
func (d *Dispatcher) startFailed(n entry, err error) {
	switch {
	case err == nil || worker.Unwanted(err):
	case d.takeNeeds(err):
	case errors.Is(err, kernel.ErrNotDue):
		d.reschedule(n)
	case errors.Is(err, workflow.ErrSuspended):
		d.park(n)
	case fault.Is(err):
		d.o.Faults.Note("due work", err, "what is due could not begin; it is tried again", "job", n.job, "case", n.root)
		d.sched.tryAgain(n)
	default:
		d.postpone(n, err)
	}
}

// postpone postpones a pending job after the kernel refused its command. That counts as an attempt. A command that exceeded the
// bounds of the kernel is not tried again: it is a fault of the definition, and each try takes as long as the bounds allow.
func (d *Dispatcher) postpone(n entry, cause error) {
	d.postponeForced(n, cause, kernel.EndWithoutHooks)
}

// postponeForced also determines what happens to the items of a timer that is given up. If the kernel refuses that too,
// it is repeated with fewer callbacks.
func (d *Dispatcher) postponeForced(n entry, cause error, force kernel.ForcedEnd) {
	r := commit.OnTree(n.root, "job put off", func(_ *commit.Tx, m *kernel.Machine) error {
		attempt := m.Timers().JobAttempt(n.job)
		wait, _ := kernel.Backoff.Next(retry.Failure{Attempt: attempt + 1, Err: cause})
		tries := kernel.MaxTries
		if errors.Is(cause, kernel.ErrRunaway) {
			tries = 1
		}
		return m.Timers().Postpone(n.job, wait, tries, worker.CauseOf(cause), force)
	})
	d.send(r, func(err error) {
		switch {
		case err == nil:
			d.o.Log.Error("a job could not be done; it is put off", "job", n.job, "case", n.root, "error", cause)
		case worker.Unwanted(err):
		case !fault.Is(err) && force < kernel.EndNothing:
			d.postponeForced(n, cause, force+1)
		default:
			d.o.Faults.Note("due work", err, "a job could not be put off; it is tried again", "job", n.job, "case", n.root)
			d.sched.tryAgain(n)
		}
	})
}

// reschedule takes up a suspended job whose time has not come: the clock was set back since the scheduler looked at it,
// or the job was woken and suspended again.
func (d *Dispatcher) reschedule(n entry) {
	var j *state.Job
	r := &commit.Request{Reads: true, Run: func(tx *commit.Tx) error {
		u, err := tx.Open(n.root)
		if err == nil {
			_, j = u.Tree.Job(n.job)
		}
		return err
	}}
	d.send(r, func(err error) {
		switch {
		case err == nil && j != nil:
			d.sched.addOne(j)
		case err != nil && !worker.Unwanted(err):
			d.sched.tryAgain(n)
		}
	})
}

// Requests of the engine itself have no caller who would repeat them. So each has a function that decides what follows an
// error.

// send queues a request of the engine itself; ended receives its outcome, on the writer's goroutine.
func (d *Dispatcher) send(r *commit.Request, ended func(error)) {
	r.Ended = ended
	d.o.Writer.Send(r)
}
