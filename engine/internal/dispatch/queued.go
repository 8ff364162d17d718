package dispatch

import (
	"context"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/workitem"
)

// queued is a record that a run goes on without. It is lazy until the run waits for it: if the function ends within that
// time, record and settlement share a commit. A fault of the store is tried again, whether or not the run waits.
//
// The settlement may overtake it only after such a fault. So the settlement looks, in its own transaction, whether the record is
// there, and makes it if it is not; the record that comes later is then refused, since the job is no longer the run's.
type queued struct {
	j     *journal
	steps []*workitem.Step
	done  chan error

	// What follows is for the writer's goroutine alone until done has the outcome.
	stored []*workitem.Step
	taken  bool // by the transaction that is open, or by one that is durable
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
		q.stored, err = m.RecordSteps(q.j.n.job, q.j.w.Fence, q.steps)
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
	q.taken = err == nil
	if fault.Is(err) {
		go q.insist(err)
		return
	}
	q.done <- err
}

// insist tries the record again after a fault, until the store works or the engine closes.
func (q *queued) insist(err error) {
	d := q.j.d
	q.done <- d.o.Retrier.Insist(context.Background(), func() error {
		if met := err; met != nil {
			err = nil
			return met
		}
		r := q.request()
		r.Ended = func(err error) { q.taken = err == nil }
		return d.o.Writer.Submit(context.Background(), r)
	})
}

// left lists the steps that are not recorded. It is called in the transaction that settles the job.
func (q *queued) left() []*workitem.Step {
	if q == nil || q.taken {
		return nil
	}
	return q.steps
}
