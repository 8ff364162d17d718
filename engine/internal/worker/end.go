package worker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Settle settles a job with its result. If the kernel refuses the result, the job fails; if it refuses the failure too,
// or the command exceeds its bounds, which is a fault of the net and not of the work, the job becomes an incident.
// After a fault of the store the same result is sent again until the store accepts it or the engine closes.
func (r *Runner) Settle(j *Journal, output json.RawMessage, failure *workitem.Failure) {
	err := r.submitSettle(j, output, failure)
	if err == nil || r.refused(j, err) {
		return
	}
	// The failure is tried once: if the kernel refuses it as well, there is no result that it would take.
	if failure == nil && !errors.Is(err, kernel.ErrRunaway) {
		failure = refusal(err)
		if errors.Is(err, errUnrecorded) {
			j.setLatest(nil) // the job fails because of it
		}
		if err = r.submitSettle(j, nil, failure); err == nil || r.refused(j, err) {
			return
		}
	}
	r.o.Log.Error("the process refuses every result of a job; it is given up", "job", j.w.Job, "case", j.root, "error", err)
	r.giveUp(j, CauseOf(err))
}

// giveUp turns a job that can end in no other way into an incident. Until that is committed, the job is not run again.
func (r *Runner) giveUp(j *Journal, failure *workitem.Failure) {
	for tries := 0; ; tries++ {
		err := r.o.Writer.Submit(context.Background(), j.request("job give up", func(_ *commit.Tx, m *kernel.Machine) error {
			return m.Leases().GiveUp(j.w.Job, j.fence.Load(), failure)
		}))
		if err == nil || r.refused(j, err) {
			return
		}
		r.o.Faults.Note("giving up", err, "a job could not be given up; it is tried again", "job", j.w.Job, "case", j.root)
		if !r.o.Retrier.Pause(r.o.Context, tries) {
			return
		}
	}
}

// refused reports whether an error says that the result is no longer needed, so that it is dropped.
// A job that was canceled, or claimed by another engine after its lease, has its outcome elsewhere.
func (r *Runner) refused(j *Journal, err error) bool {
	if Unwanted(err) {
		r.o.Log.Debug("a late result was refused", "job", j.w.Job, "case", j.root, "reason", err)
		return true
	}
	return false
}

// submitSettle sends the result of a job. The attempt is logged once the result is committed, so that no line of the log
// is about a result that the database does not have.
func (r *Runner) submitSettle(j *Journal, output json.RawMessage, failure *workitem.Failure) error {
	return r.submitEnd(j, "job settle", func(m *kernel.Machine) error { return m.Leases().Settle(j.w.Job, j.fence.Load(), output, failure) },
		func(changes []state.Change) { r.attempts.call(j.w, failure, changes) })
}

// Yield releases the job of a function that has yielded its worker. If it cannot be released now, its lease expires.
func (r *Runner) Yield(j *Journal) {
	release := func() error {
		return r.submitEnd(j, "job yield", func(m *kernel.Machine) error { return m.Leases().Release(j.w.Job, j.fence.Load(), false) }, nil)
	}
	err := release()
	if errors.Is(err, errUnrecorded) {
		j.setLatest(nil) // the step runs again, and the function gets the refusal then
		err = release()
	}
	if err != nil && !r.refused(j, err) {
		r.o.Log.Error("a job could not give its worker back; it is due again when its lease is over", "job", j.w.Job, "case", j.root, "error", err)
	}
}

// submitEnd ends a run by a command, together with the steps that are still to be recorded. It calls done, if not nil,
// with the changes of the command.
// The context is not that of the job: a result is also recorded while the engine closes, or after the job's context
// has ended.
func (r *Runner) submitEnd(j *Journal, word string, end func(*kernel.Machine) error, done func([]state.Change)) error {
	later := j.queued()
	return r.o.Retrier.Retry(r.o.Context, func() error {
		q := j.request(word, func(_ *commit.Tx, m *kernel.Machine) error {
			if err := later.missing(); err != nil {
				return err
			}
			if len(j.last) > 0 {
				if _, err := m.Steps().Record(j.w.Job, j.fence.Load(), j.last); err != nil {
					return err
				}
			}
			return end(m)
		})
		err := r.o.Writer.Submit(context.Background(), q)
		if err == nil && done != nil {
			done(q.Changes())
		}
		return err
	})
}

// Release releases a job that this engine cannot end. While the store fails, it is tried again: nothing else releases a
// running job of an engine that is alive. If the engine is closing, the next process that opens the store releases it
// instead.
func (r *Runner) Release(j *Journal) {
	for tries := 0; ; tries++ {
		err := r.o.Writer.Submit(context.Background(), j.request("job release", func(_ *commit.Tx, m *kernel.Machine) error {
			return m.Leases().Release(j.w.Job, j.fence.Load(), false)
		}))
		switch {
		case err == nil, Unwanted(err):
			return
		case !fault.Is(err), !r.o.Retrier.Pause(r.o.Context, tries):
			r.o.Log.Error("a job could not be given back; it is when the engine is opened next", "job", j.w.Job, "error", err)
			return
		}
	}
}
