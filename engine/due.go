package engine

import (
	"context"
	"errors"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// What is due is a request to the writer without a waiting caller. This file says what becomes of one that does not succeed: it
// met a fault of the store and is tried again, or the process refuses it and it is put off, or it is obsolete.

// fire has the writer do what a due timer is for.
func (e *Engine) fire(n entry) {
	r := e.onLoadedJob(n, "job fire", false, func(m *kernel.Machine) error { return m.Fire(n.job) })
	fire := r.run
	r.run = func(tx *Tx) error {
		u, err := tx.open(n.root)
		if err != nil {
			return err
		}
		_, j := u.tree.Job(n.job)
		if err := fire(tx); err != nil || j.Kind != state.JobTell {
			return err
		}
		return tx.callDue(u, j)
	}
	r.ctx = context.Background()
	r.ended = func(err error) {
		e.notBegun(n, err)
		e.active.add(-1)
	}
	if !e.enqueue(r) {
		e.active.add(-1)
	}
}

// notBegun decides what becomes of a due entry whose request ended so. It queues what there is to do and does not block.
func (e *Engine) notBegun(n entry, err error) {
	switch {
	case err == nil || unwanted(err):
	case errors.Is(err, kernel.ErrNotDue):
		e.lookAgain(n)
	case isFault(err):
		e.faults.note("due work", err, "what is due could not begin; it is tried again", "job", n.job, "case", n.root)
		e.sched.tryAgain(n)
	default:
		e.putOff(n, err)
	}
}

// unwanted reports whether an error says that nothing is left to do: the job has ended, is another's, or the engine is closed.
func unwanted(err error) bool {
	return errors.Is(err, ErrClosed) || errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrNotFound) || errors.Is(err, errNotLoaded)
}

// putOff has a pending job wait after the process refused what the engine did for it. That counts as an attempt.
func (e *Engine) putOff(n entry, cause error) { e.putOffBut(n, cause, kernel.WithoutOwn) }

// putOffBut also says what becomes of the items of a timer when it is given up. If that is refused too, less is asked for.
func (e *Engine) putOffBut(n entry, cause error, insist kernel.Insist) {
	r := e.onJob(n.root, "job put off", false, func(m *kernel.Machine) error {
		attempt := m.JobAttempt(n.job)
		wait, _ := backoff.Next(retry.Failure{Attempt: attempt + 1, Err: cause})
		return m.PutOff(n.job, wait, maxTries, workitem.FailureOf(cause), insist)
	})
	e.follow(r, func(err error) {
		switch {
		case err == nil:
			e.log.Error("a job could not be done; it is put off", "job", n.job, "case", n.root, "error", cause)
		case unwanted(err):
		case !isFault(err) && insist < kernel.NotAtAll:
			e.putOffBut(n, cause, insist+1)
		default:
			e.faults.note("due work", err, "a job could not be put off; it is tried again", "job", n.job, "case", n.root)
			e.sched.tryAgain(n)
		}
	})
}

// lookAgain takes up a suspended job whose time has not come: the clock was set back since the scheduler looked at it, or the
// job was woken and suspended anew.
func (e *Engine) lookAgain(n entry) {
	var j *state.Job
	r := &request{reads: true, run: func(tx *Tx) error {
		u, err := tx.open(n.root)
		if err == nil {
			_, j = u.tree.Job(n.job)
		}
		return err
	}}
	e.follow(r, func(err error) {
		switch {
		case err == nil && j != nil:
			e.sched.takeUp(j)
		case err != nil && !unwanted(err):
			e.sched.tryAgain(n)
		}
	})
}

// follow queues a request of the engine's own; ended gets its outcome, on the writer.
func (e *Engine) follow(r *request, ended func(error)) {
	r.ctx, r.ended = context.Background(), ended
	e.enqueue(r)
}
