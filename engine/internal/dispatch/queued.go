package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/workitem"
)

// queued is a record that a run goes on without. It is lazy until the run waits for it: if the function ends within that
// time, record and settlement share a commit. A fault of the store is tried again, whether or not the run waits.
//
// The settlement comes after it in the queue, and could overtake it only after such a fault. So the settlement looks, in its own
// transaction, whether the record is there, and is tried again if it is not. It does not make the record itself: a fresh attempt,
// which the settlement may open, takes steps over from the entries before.
type queued struct {
	j     *journal
	steps []*workitem.Step
	done  chan error

	// What follows is for the writer's goroutine alone until done has the outcome.
	stored  []*workitem.Step
	taken   bool  // by the transaction that is open, or by one that is durable
	refused error // why there will be no record
}

// Queue implements [step.Journal].
func (j *journal) Queue(steps ...*workitem.Step) func() ([]*workitem.Step, error) {
	q := &queued{j: j, steps: steps, done: make(chan error, 1)}
	j.setLatest(q)
	r := q.request()
	r.Lazy, r.Ended = true, q.ended
	if !j.d.o.Writer.Send(r) {
		q.done <- j.d.o.Retrier.Closed()
	}
	return func() ([]*workitem.Step, error) {
		j.d.o.Writer.Hurry(r)
		if err := <-q.done; err != nil {
			j.setLatest(nil) // the run knows; what was refused is not settled
			return nil, lostBy(err)
		}
		return j.keepAll(q.stored), nil
	}
}

func (j *journal) setLatest(q *queued) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.latest = q
}

// queued returns the last record that the run went on without; nil if there is none.
func (j *journal) queued() *queued {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.latest
}

// request makes the command that records the steps. An outcome has to be added.
func (q *queued) request() *commit.Request {
	r := q.j.request("step "+names(q.steps), func(_ *commit.Tx, m *kernel.Machine) (err error) {
		q.stored, err = m.RecordSteps(q.j.n.job, q.j.fence.Load(), q.steps)
		return err
	})
	run := r.Run
	r.Run = func(tx *commit.Tx) error {
		q.taken = false // it is run again if another request undid the transaction
		return run(tx)
	}
	r.Accepted = func(*commit.Tx) { q.taken = true }
	return r
}

// ended takes the outcome of the first request.
func (q *queued) ended(err error) {
	q.note(err)
	if fault.Is(err) {
		go q.retry(err)
		return
	}
	q.done <- err
}

// retry tries the record again after a fault, until the store works or the engine closes.
func (q *queued) retry(err error) {
	d := q.j.d
	q.done <- d.o.Retrier.Insist(context.Background(), func() error {
		if met := err; met != nil {
			err = nil
			return met
		}
		r := q.request()
		r.Ended = q.note
		return d.o.Writer.Submit(context.Background(), r)
	})
}

// note keeps the outcome of a request.
func (q *queued) note(err error) {
	q.taken = err == nil
	if !fault.Is(err) {
		q.refused = err
	}
}

// errUnrecorded says that a settlement is refused since the record before it was.
var errUnrecorded = errors.New("the last step of the job could not be recorded")

// errAhead is the error of a settlement that would overtake a record. It is a fault, so it is tried again.
var errAhead = fmt.Errorf("%w: the last step of the job is not recorded", fault.ErrCommit)

// missing returns why the job cannot be settled in the transaction that is open; nil if the record is in it, or durable.
func (q *queued) missing() error {
	switch {
	case q == nil || q.taken:
		return nil
	case q.refused != nil:
		return fmt.Errorf("%w: %w", errUnrecorded, q.refused)
	}
	return errAhead
}
