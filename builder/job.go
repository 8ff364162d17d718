package builder

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// JobOptions are the options of a job.
type JobOptions struct {
	Queue  string          // "" is the default queue
	Retry  retry.Policy    // after a failure; the zero value does not retry
	Limits []Need          // what each attempt acquires before it starts; see [Limits]
	Hours  schedule.Window // when the function may start; the zero value is always; see [Hours]
	FairBy FairKey         // the key for fair scheduling, see [FairKeyOf]; the zero value is the same key for all
}

// JobRef is the handle of a function that runs in a worker, outside any transaction, with a P as its payload.
type JobRef[P any] struct{ j *job }

type job struct {
	d    *draft
	name string
	pos  net.Pos
	call *workflow.Call
}

// Scheduler is the argument of a callback, which can schedule jobs: a case, an activation, a change or a work
// item.
type Scheduler interface {
	Schedule(n activities.NewJob) (workitem.JobID, error)
}

// Job declares a function that callbacks can schedule with [JobRef.After]: external work that is not the work of an
// item, such as sending a reminder. Its error is handled like that of a task's Run.
func Job[C, P any](b *Builder[C], name string, f func(context.Context, P) error, o JobOptions) *JobRef[P] {
	d, pos := b.draft(), caller()
	d.frozen("job "+name, pos)
	d.checkName("job", name, pos)
	checkType[P](d, fmt.Sprintf("the payload of job %q", name), name, pos)
	if f == nil {
		d.problem(NilFunction, name, pos, "job %q has no function", name)
	}
	if err := o.Retry.Validate(); err != nil {
		d.problem(BadRetry, name, pos, "the retry policy of job %q is invalid: %s", name, oneLine(err))
	}
	for _, old := range d.jobs {
		if old.name == name {
			d.problem(net.DuplicateName, name, pos, "there are two jobs named %q", name)
			d.other(old.pos)
		}
	}
	j := &job{d: d, name: name, pos: pos, call: &workflow.Call{
		Queue: o.Queue, Retry: o.Retry, Run: callOf(f), Decode: decoderOf[P](),
		Limits: usesOf(o.Limits), Hours: o.Hours,
	}}
	if key := fairOf[P](d, fmt.Sprintf("job %q", name), name, pos, o.FairBy); key != nil {
		j.call.FairBy = withInput(key)
	}
	d.checkQueue(fmt.Sprintf("job %q", name), name, pos, o.Queue)
	d.checkNeeds(fmt.Sprintf("job %q", name), name, pos, reflect.TypeFor[P](), o.Limits)
	d.jobs = append(d.jobs, j)
	return &JobRef[P]{j}
}

func callOf[P any](f func(context.Context, P) error) func(context.Context, *activities.Work) error {
	return func(ctx context.Context, w *activities.Work) error {
		p, err := restore[P](w.Input)
		if err != nil {
			return workitem.Fatal(fmt.Errorf("payload of job %s: %w", w.Name, err))
		}
		return f(context.WithValue(ctx, workKey{}, w), p)
	}
}

// Name is the job's name.
func (r *JobRef[P]) Name() string {
	if r == nil || r.j == nil {
		return ""
	}
	return r.j.name
}

// After schedules the function to run the time d after the transaction that commits the job; 0 is at once, and a
// negative time is an error. The job belongs to the case, activation or item s, and is canceled when that ends. In a
// callback that reports an end it belongs to the case.
func (r *JobRef[P]) After(s Scheduler, d time.Duration, payload P) (workitem.JobID, error) {
	return r.schedule(s, d, payload, false)
}

// Detached is like After, but the job is not canceled when its case ends. It is for work that must happen after the
// end of a case, such as a cleanup.
func (r *JobRef[P]) Detached(s Scheduler, d time.Duration, payload P) (workitem.JobID, error) {
	return r.schedule(s, d, payload, true)
}

func (r *JobRef[P]) schedule(s Scheduler, d time.Duration, payload P, detached bool) (workitem.JobID, error) {
	if s == nil || r.Name() == "" {
		return workitem.JobID{}, fmt.Errorf("schedule job %q: give a declared job, and the callback's argument", r.Name())
	}
	input, err := encode(payload)
	if err != nil {
		return workitem.JobID{}, fmt.Errorf("schedule job %s: %w", r.Name(), err)
	}
	return s.Schedule(activities.NewJob{Name: r.Name(), Input: input, After: d, Detached: detached})
}
