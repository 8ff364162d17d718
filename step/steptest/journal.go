package steptest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workitem"
)

// Database begins transactions, as a *sql.DB does.
type Database interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// run is the journal of one run.
type run struct {
	j     *Job
	watch func(*workitem.Step)
	due   map[workitem.StepID]int // the attempts of which it was reported that the next one is due
	queue []*workitem.Step        // ended, and not reported yet
	later []*workitem.Step        // to be recorded, and not waited for yet
}

func clones(steps []*workitem.Step) []*workitem.Step {
	c := make([]*workitem.Step, len(steps))
	for i, s := range steps {
		v := *s
		c[i] = &v
	}
	return c
}

func (j *Job) claim() (*run, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.state {
	case settled:
		return nil, fmt.Errorf("steptest: the job has been settled; Retry it, or Restart it")
	case held:
		return nil, fmt.Errorf("steptest: the job is being run")
	}
	if j.Info.Log == nil {
		j.Info.Log = slog.New(slog.DiscardHandler)
	}
	j.run = &run{j: j, due: make(map[workitem.StepID]int)}
	j.state = held
	return j.run, nil
}

// drop takes the job from its run.
func (j *Job) drop() {
	if j.state == held {
		j.run, j.state = nil, ready
	}
}

// change does something to the job, and reports to the run what has ended.
func (j *Job) change(f func() error) error {
	j.mu.Lock()
	err := f()
	j.mu.Unlock()
	j.tell()
	return err
}

// tell reports to the run what has ended, in order, and not before the watcher has returned.
func (j *Job) tell() {
	work := func() {
		j.watching.Lock()
		defer j.watching.Unlock()
		for {
			j.mu.Lock()
			r := j.run
			if r == nil || r.watch == nil || len(r.queue) == 0 {
				j.mu.Unlock()
				return
			}
			s := *r.queue[0]
			j.mu.Unlock()
			r.watch(&s)
			j.mu.Lock()
			r.queue = r.queue[1:]
			j.mu.Unlock()
		}
	}
	if j.Later {
		go work()
	} else {
		work()
	}
}

// end ends a waiting step.
func (j *Job) end(s *workitem.Step, to workitem.StepState, result json.RawMessage, f *workitem.Failure) {
	s.State, s.Result, s.Failure, s.Ended = to, result, f, j.now
	j.wake(s)
}

// stop cancels the child that a step waits for.
func (j *Job) stop(s *workitem.Step) {
	if s.Kind == workitem.StepCase {
		j.stopped[s.Child] = true
	}
}

// wake reports a step to the run, or the job run again.
func (j *Job) wake(s *workitem.Step) {
	if j.state == suspended {
		j.state = ready
	}
	if j.run != nil && j.run.watch != nil {
		v := *s
		j.run.queue = append(j.run.queue, &v)
		j.run.due[s.ID] = s.Attempt
	}
}

// waited reports whether nothing more comes of the time that a step waits for.
func (j *Job) waited(s *workitem.Step) bool {
	if s.Kind != workitem.StepDo {
		return false
	}
	if j.run != nil {
		return j.run.due[s.ID] == s.Attempt
	}
	return !s.Due.After(j.now) && j.state == ready
}

// write makes one transaction for a run, and crashes where it should.
func (r *run) write(f func() error) error {
	j := r.j
	if j.run != r {
		return step.ErrLost
	}
	j.writes++
	crash := j.writes == j.crash
	if crash && !j.after {
		j.drop()
		return ErrCrashed
	}
	if err := f(); err != nil {
		return err
	}
	if crash {
		j.drop()
		return ErrCrashed
	}
	return nil
}

// Steps lists what the run may continue with.
func (r *run) Steps() []*workitem.Step {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	return clones(slices.DeleteFunc(slices.Clone(r.j.steps), func(s *workitem.Step) bool { return r.j.redone(s) }))
}

// redone reports whether a step belongs to an earlier attempt, and has not succeeded.
func (j *Job) redone(s *workitem.Step) bool {
	return s.State != workitem.StepDone && !s.Copied && s.Run != j.Info.Attempt
}

// Record records steps.
func (r *run) Record(_ context.Context, steps ...*workitem.Step) (stored []*workitem.Step, err error) {
	err = r.j.change(func() error {
		return r.write(func() (err error) {
			stored, err = r.put(steps)
			return err
		})
	})
	return stored, err
}

// Queue keeps steps until they are waited for, or the job is settled: there is no later time for a journal to record them.
func (r *run) Queue(steps ...*workitem.Step) func() ([]*workitem.Step, error) {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	r.later = steps
	return func() (stored []*workitem.Step, err error) {
		err = r.j.change(func() error {
			r.later = nil
			return r.write(func() (err error) {
				stored, err = r.put(steps)
				return err
			})
		})
		return stored, err
	}
}

// Suspend records steps, and gives the job up if nothing has ended.
func (r *run) Suspend(_ context.Context, steps ...*workitem.Step) (stored []*workitem.Step, gone bool, err error) {
	err = r.j.change(func() error {
		return r.write(func() (err error) {
			if stored, err = r.put(steps); err != nil {
				return err
			}
			r.j.ring() // also what was due before this run began
			came := slices.ContainsFunc(stored, func(s *workitem.Step) bool {
				return s.State == workitem.StepDone && s.Kind == workitem.StepEvent || s.State == workitem.StepFailed
			})
			if gone = len(r.queue) == 0 && !came; gone {
				r.j.run, r.j.state = nil, suspended
			}
			return nil
		})
	})
	return stored, gone, err
}

// put stores steps, and rings for those that are due at once.
func (r *run) put(steps []*workitem.Step) ([]*workitem.Step, error) {
	j := r.j
	stored := make([]*workitem.Step, len(steps))
	for i, s := range steps {
		v, err := j.store(s)
		if err != nil {
			return nil, err
		}
		stored[i] = v
	}
	now := slices.ContainsFunc(stored, func(s *workitem.Step) bool { return !s.Due.IsZero() && !s.Due.After(j.now) })
	stored = clones(stored)
	if now {
		j.ring()
	}
	return stored, nil
}

// store stores one step.
func (j *Job) store(s *workitem.Step) (*workitem.Step, error) {
	if s.Job != j.Info.Job || s.Case != j.Info.Case || s.Name == "" || s.Kind == "" {
		return nil, fmt.Errorf("steptest: step %q says neither its job nor what it is: %+v", s.Name, s)
	}
	if !s.ID.IsZero() {
		return j.restore(s)
	}
	if old := j.find(s.Name); old != nil && !j.redone(old) {
		return nil, fmt.Errorf("steptest: step %q is there already: %+v, now %+v", s.Name, old, s)
	}
	v := *s
	v.ID = j.ids.NewStepID(j.now)
	if v.Created.IsZero() {
		v.Created = j.now
	}
	switch mail := j.mail[v.Target]; {
	case v.Kind == workitem.StepToken:
		v.Result, _ = json.Marshal("token-" + v.ID.String())
	case v.State != workitem.StepWaiting:
	case v.Kind == workitem.StepEvent && !v.Topic && len(mail) > 0:
		v.State, v.Result = workitem.StepDone, mail[0]
		j.mail[v.Target] = mail[1:]
	case v.Kind == workitem.StepCase && j.refused[v.Target] != nil:
		v.State, v.Failure = workitem.StepFailed, j.refused[v.Target]
	case v.Kind == workitem.StepCase:
		v.Child = j.ids.NewCaseID(j.now)
	}
	if v.State.Final() {
		v.Ended = j.now
	}
	j.add(&v)
	return &v, nil
}

// restore gives a waiting step a new state; one that has ended meanwhile stays.
func (j *Job) restore(s *workitem.Step) (*workitem.Step, error) {
	i, ok := j.byID[s.ID]
	if !ok || j.steps[i].Name != s.Name || j.steps[i].Kind != s.Kind {
		return nil, fmt.Errorf("steptest: step %q has the id of another one: %+v", s.Name, s)
	}
	old := j.steps[i]
	if old.State.Final() {
		return old, nil
	}
	v := *s
	if v.State.Final() {
		v.Ended = j.now
	}
	if v.State == workitem.StepCanceled {
		j.stop(&v)
	}
	j.steps[i] = &v
	return &v, nil
}

// Tx runs a function in a transaction of the job's database.
func (r *run) Tx(
	ctx context.Context, s *workitem.Step, f func(context.Context, domain.DB) (json.RawMessage, error),
) (*workitem.Step, error) {
	v := *s
	if r.j.DB == nil {
		v.State, v.Failure = workitem.StepFailed, workitem.Failf(workitem.CodeError, "steptest: the job has no DB")
		return r.one(ctx, &v, nil)
	}
	tx, err := r.j.DB.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	result, err := f(ctx, tx)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		v.State, v.Failure = workitem.StepFailed, workitem.FailureOf(err)
		return r.one(ctx, &v, tx.Rollback)
	}
	v.State, v.Result = workitem.StepDone, result
	return r.one(ctx, &v, tx.Commit)
}

// one records one step together with the end of a transaction.
func (r *run) one(_ context.Context, s *workitem.Step, end func() error) (stored *workitem.Step, err error) {
	err = r.j.change(func() error {
		return r.write(func() error {
			if end != nil {
				if err := end(); err != nil {
					return err
				}
			}
			all, err := r.put([]*workitem.Step{s})
			if err == nil {
				stored = all[0]
			}
			return err
		})
	})
	return stored, err
}

// settle ends the job, and with it every step that waits.
func (r *run) settle(out step.Outcome) error {
	return r.j.change(func() error {
		j := r.j
		return r.write(func() error {
			if _, err := r.put(append(slices.Clone(r.later), out.Steps...)); err != nil {
				return errors.Join(out.Err, err)
			}
			j.run, j.state, j.err = nil, settled, out.Err
			for _, s := range j.waits() {
				j.stop(s)
				j.end(s, workitem.StepCanceled, nil, nil)
			}
			return nil
		})
	})
}

// release gives the worker back.
func (r *run) release(out step.Outcome) error {
	return r.j.change(func() error {
		return r.write(func() error {
			if _, err := r.put(append(slices.Clone(r.later), out.Steps...)); err != nil {
				return err
			}
			r.j.run, r.j.state = nil, ready
			return nil
		})
	})
}

// Watch reports ends.
func (r *run) Watch(f func(*workitem.Step)) {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	r.watch = f
}

// Now returns the job's time.
func (r *run) Now() time.Time { return r.j.Now() }
