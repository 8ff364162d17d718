package steptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrCrashed says that the run was ended by [Job.CrashAt]. It is step.ErrLost too.
var ErrCrashed = fmt.Errorf("the process crashed: %w", step.ErrLost)

// ErrStuck says that a job waits for something that only a test can bring about: an event, or the end of a child.
var ErrStuck = errors.New("the job waits, and no time is due")

// Job is one job, with all that is remembered of it. Make one with [New]; the exported fields may be set before the
// first run. Its methods are safe for concurrent use.
type Job struct {
	Info step.Info // what the runs are given. New fills Case, Job, Attempt and Key
	DB   Database  // where [step.Tx] runs its functions. Default: none, and such a step fails

	// Later has the ends of steps reported by a goroutine of their own, as an engine may do, instead of before the method
	// that brought them about returns.
	Later bool

	mu      sync.Mutex
	ids     *workitem.Generator
	now     time.Time
	steps   []*workitem.Step // in the order of their first record
	waiting []int            // the indexes of those that wait
	byName  map[string]int   // the index of the latest of a name
	byID    map[workitem.StepID]int
	mail    map[string][]json.RawMessage
	refused map[string]*workitem.Failure
	stopped map[workitem.CaseID]bool // the children that were canceled by their steps
	state   state
	err     error // with which the job was settled
	run     *run  // the one that has the job; nil if none has
	writes  int
	crash   int // at which write; 0 for none
	after   bool

	watching sync.Mutex // one call of the watcher at a time
}

type state uint8

const (
	ready state = iota
	held
	suspended
	settled
)

// New returns a job that no run has begun, on a clock that stands at the beginning of 2030.
func New() *Job {
	j := &Job{
		now: virtual.Epoch, ids: workitem.NewGenerator(rand.NewChaCha8([32]byte{})),
		mail: make(map[string][]json.RawMessage), refused: make(map[string]*workitem.Failure),
		stopped: make(map[workitem.CaseID]bool), byName: make(map[string]int), byID: make(map[workitem.StepID]int),
	}
	j.Info = step.Info{Case: j.ids.NewCaseID(j.now), Job: j.ids.NewJobID(j.now), Attempt: 1}
	j.Info.Key = j.Info.Job.String()
	return j
}

// Run calls the job's function once, as an engine does, and returns how that ended. A job that is suspended is run
// whether or not something has ended, as after a crash.
func (j *Job) Run(ctx context.Context, fn func(context.Context) error) step.Outcome {
	r, err := j.claim()
	if err != nil {
		return step.Outcome{Err: err}
	}
	run := step.NewRun(r, j.Info)
	out := run.End(guarded(run.Context(ctx), fn))
	if out.Suspended || errors.Is(out.Err, step.ErrLost) {
		return out
	}
	end := r.settle
	if out.Yielded {
		end = r.release
	}
	if err := end(out); err != nil {
		return step.Outcome{Err: err}
	}
	return out
}

// guarded makes an error of a panic.
func guarded(ctx context.Context, fn func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = retry.NewPanicError(p)
		}
	}()
	return fn(ctx)
}

// Drive runs the job until it is settled, and lets the time pass whenever it waits for that. A run that crashed is
// followed by another one. The error of the outcome is [ErrStuck] if it waits for something else.
func (j *Job) Drive(ctx context.Context, fn func(context.Context) error) step.Outcome {
	for {
		out := j.Run(ctx, fn)
		switch {
		case j.Settled():
			return step.Outcome{Err: j.Err(), Steps: out.Steps}
		case j.Ready():
			continue
		}
		due, ok := j.NextDue()
		if !ok {
			return step.Outcome{Suspended: true, Err: ErrStuck}
		}
		j.Advance(due.Sub(j.Now()))
	}
}

// Now returns the time of the job's clock.
func (j *Job) Now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now
}

// Ready reports whether the job may be run: it is new, its run was lost, or one of the steps it was suspended for has
// ended.
func (j *Job) Ready() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state == ready
}

// Settled reports whether the job has ended.
func (j *Job) Settled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state == settled
}

// Err returns what the job was settled with.
func (j *Job) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Steps lists everything that was recorded, of all attempts, oldest first.
func (j *Job) Steps() []*workitem.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return clones(j.steps)
}

// Step returns the latest record of a name; nil if there is none.
func (j *Job) Step(name string) *workitem.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.find(name)
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

// Writes counts the transactions so far.
func (j *Job) Writes() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes
}

// Send sends an event to the case: to the step that has waited for it longest, or else to the first that will.
func (j *Job) Send(event string, value any) error {
	raw, err := domain.Encode(value)
	if err != nil {
		return err
	}
	return j.change(func() error {
		if j.state == settled {
			return fmt.Errorf("event %q: the job has ended", event)
		}
		for _, s := range j.waits() {
			if s.Kind == workitem.StepEvent && !s.Topic && s.Target == event {
				j.end(s, workitem.StepDone, raw, nil)
				return nil
			}
		}
		j.mail[event] = append(j.mail[event], raw)
		return nil
	})
}

// Broadcast sends a value to all steps that wait for a topic.
func (j *Job) Broadcast(topic string, value any) error {
	raw, err := domain.Encode(value)
	if err != nil {
		return err
	}
	return j.change(func() error {
		for _, s := range j.waits() {
			if s.Kind == workitem.StepEvent && s.Topic && s.Target == topic {
				j.end(s, workitem.StepDone, raw, nil)
			}
		}
		return nil
	})
}

// Complete ends the child case of a waiting step, with its output.
func (j *Job) Complete(name string, output any) error {
	raw, err := domain.Encode(output)
	if err != nil {
		return err
	}
	return j.endChild(name, workitem.StepDone, raw, nil)
}

// Fail ends the child case of a waiting step with a failure.
func (j *Job) Fail(name string, f *workitem.Failure) error {
	return j.endChild(name, workitem.StepFailed, nil, f)
}

// Cancel cancels the child case of a waiting step.
func (j *Job) Cancel(name string) error { return j.endChild(name, workitem.StepCanceled, nil, nil) }

func (j *Job) endChild(name string, to workitem.StepState, output json.RawMessage, f *workitem.Failure) error {
	return j.change(func() error {
		s := j.find(name)
		if s == nil || s.Kind != workitem.StepCase || s.State != workitem.StepWaiting {
			return fmt.Errorf("step %q waits for no child case", name)
		}
		j.end(s, to, output, f)
		return nil
	})
}

// Refuse has every further child case of a workflow refused, with this failure, as if there were none of the name. A
// nil failure lets them be started again.
func (j *Job) Refuse(workflow string, f *workitem.Failure) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused[workflow] = f
}

// Canceled reports whether a child case was canceled by its step: its time was over, it was not chosen, or the job
// ended.
func (j *Job) Canceled(child workitem.CaseID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stopped[child]
}

// NextDue returns the earliest time that a step waits for.
func (j *Job) NextDue() (time.Time, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.nextDue()
}

// Advance lets d pass. Steps whose time is over end, each at its own time.
func (j *Job) Advance(d time.Duration) {
	j.mu.Lock()
	target := j.now.Add(d)
	j.mu.Unlock()
	for more := true; more; {
		_ = j.change(func() error {
			due, ok := j.nextDue()
			if more = ok && !due.After(target); more {
				j.now = due
				j.ring()
			} else {
				j.now = target
			}
			return nil
		})
	}
}

// CrashAt ends the run at the n-th transaction from now: before it is committed, or after it was, but without a
// report to the run.
func (j *Job) CrashAt(n int, after bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.crash, j.after = j.writes+n, after
}

// Lose takes the job from the run that has it, as if its lease had run out. The next Run gets it.
func (j *Job) Lose() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop()
}

// Retry begins the next attempt of a job that has failed: failed steps are done again, finished ones are kept.
func (j *Job) Retry() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Info.Attempt++
	j.state, j.err = ready, nil
}

// Restart returns a new job for the same work, which has inherited the finished steps.
func (j *Job) Restart() *Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := New()
	n.now, n.DB, n.ids, n.Later = j.now, j.DB, j.ids, j.Later
	n.Info = j.Info
	n.Info.Job, n.Info.Attempt = n.ids.NewJobID(n.now), 1
	for _, s := range j.steps {
		if s.State == workitem.StepDone {
			c := *s
			c.ID, c.Job, c.Copied = n.ids.NewStepID(n.now), n.Info.Job, true
			n.add(&c)
		}
	}
	return n
}

// String lists the steps, one a line: "charge do done".
func (j *Job) String() string {
	var b []byte
	for _, s := range j.Steps() {
		b = fmt.Appendf(b, "%s %s %v\n", s.Name, s.Kind, s.State)
	}
	return string(b)
}

// find returns the latest step of a name.
func (j *Job) find(name string) *workitem.Step {
	if i, ok := j.byName[name]; ok {
		return j.steps[i]
	}
	return nil
}

// add appends a step.
func (j *Job) add(s *workitem.Step) {
	i := len(j.steps)
	j.steps = append(j.steps, s)
	j.byName[s.Name], j.byID[s.ID] = i, i
	if s.State == workitem.StepWaiting {
		j.waiting = append(j.waiting, i)
	}
}

// waits lists the steps that wait, the oldest first.
func (j *Job) waits() []*workitem.Step {
	j.waiting = slices.DeleteFunc(j.waiting, func(i int) bool { return j.steps[i].State != workitem.StepWaiting })
	steps := make([]*workitem.Step, len(j.waiting))
	for k, i := range j.waiting {
		steps[k] = j.steps[i]
	}
	return steps
}

func (j *Job) nextDue() (first time.Time, ok bool) {
	for _, s := range j.waits() {
		if !s.Due.IsZero() && !j.waited(s) && (!ok || s.Due.Before(first)) {
			first, ok = s.Due, true
		}
	}
	return first, ok
}

// ring ends the steps whose time has come, in the order of their times.
func (j *Job) ring() {
	due := slices.DeleteFunc(j.waits(), func(s *workitem.Step) bool {
		return s.Due.IsZero() || s.Due.After(j.now) || j.waited(s)
	})
	slices.SortStableFunc(due, func(a, b *workitem.Step) int { return a.Due.Compare(b.Due) })
	for _, s := range due {
		switch s.Kind {
		case workitem.StepSleep:
			j.end(s, workitem.StepDone, nil, nil)
		case workitem.StepDo:
			j.wake(s)
		default:
			j.stop(s)
			j.end(s, workitem.StepFailed, nil, workitem.Failf(workitem.CodeTimeout, "nothing came until %v", s.Due))
		}
	}
}
