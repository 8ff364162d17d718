package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/workitem"
)

// queued is a record of steps for which the function does not wait. It is lazy until the function waits: if the
// function ends within that time, the record and the result of the job share a commit. After a fault of the store it is
// repeated, whether or not the function waits.
//
// The settlement of the job is queued after it, and could overtake it only after such a fault. So the settlement checks
// in its transaction that the record is there, and is repeated if it is not. It cannot write the record itself: it may
// open the next attempt, which takes over the steps from earlier entries of the journal.
type queued struct {
	j     *Journal
	steps []*workitem.Step
	done  chan error

	// The fields below belong to the writer's goroutine until done is closed.
	stored  []*workitem.Step
	taken   bool  // by the current transaction, or by a durable one
	refused error // why the record was refused for good
}

// Queue implements [step.Journal].
func (j *Journal) Queue(steps ...*workitem.Step) func() ([]*workitem.Step, error) {
	q := &queued{j: j, steps: steps, done: make(chan error, 1)}
	j.setLatest(q)
	r := q.request()
	r.Lazy, r.Ended = true, q.ended
	if !j.o.Writer.Send(r) {
		q.done <- j.o.Retrier.Closed()
	}
	return func() ([]*workitem.Step, error) {
		j.o.Writer.MakeUrgent(r)
		if err := <-q.done; err != nil {
			j.setLatest(nil) // the function gets the error, and the settlement must not wait for this record
			return nil, lostBy(err)
		}
		return j.keepAll(q.stored), nil
	}
}

func (j *Journal) setLatest(q *queued) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.latest = q
}

// queued returns the last record for which the function did not wait; nil if there is none.
func (j *Journal) queued() *queued {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.latest
}

// request returns the request that records the steps. The caller sets Ended.
func (q *queued) request() *commit.Request {
	r := q.j.request("step "+names(q.steps), func(_ *commit.Tx, m *kernel.Machine) (err error) {
		q.stored, err = m.Steps().Record(q.j.w.Job, q.j.fence.Load(), q.steps)
		return err
	})
	run := r.Run
	r.Run = func(tx *commit.Tx) error {
		q.taken = false // another request may have rolled back the transaction of the previous run
		return run(tx)
	}
	r.Accepted = func(*commit.Tx) { q.taken = true }
	return r
}

// ended receives the outcome of the first request.
func (q *queued) ended(err error) {
	q.note(err)
	if fault.Is(err) {
		go q.retry(err)
		return
	}
	q.done <- err
}

// retry repeats the record after a fault, until the store works or the engine closes.
func (q *queued) retry(err error) {
	o := q.j.o
	q.done <- o.Retrier.Retry(context.Background(), func() error {
		if met := err; met != nil {
			err = nil
			return met
		}
		r := q.request()
		r.Ended = q.note
		return o.Writer.Submit(context.Background(), r)
	})
}

// note stores the outcome of a request.
func (q *queued) note(err error) {
	q.taken = err == nil
	if !fault.Is(err) {
		q.refused = err
	}
}

// errUnrecorded says that a settlement is refused because the record before it was refused.
var errUnrecorded = errors.New("the last step of the job could not be recorded")

// errOvertakes is the error of a settlement that would overtake a record. It counts as a fault, so it is repeated.
var errOvertakes = fmt.Errorf("%w: the last step of the job is not recorded", fault.ErrCommit)

// missing returns why the job cannot be settled in the current transaction; nil if the record is in it, or durable.
func (q *queued) missing() error {
	switch {
	case q == nil || q.taken:
		return nil
	case q.refused != nil:
		return fmt.Errorf("%w: %w", errUnrecorded, q.refused)
	}
	return errOvertakes
}
