package builder

import (
	"cmp"
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

// The defaults of a function.
const (
	DefaultAttempts  = 4                      // in all, the first included
	DefaultFirstWait = 250 * time.Millisecond // before the second attempt; each further one doubles it
	DefaultKeep      = 7 * 24 * time.Hour     // how long a run is kept after its end
)

// DefaultRetry is the retry policy of a function without one of its own: 4 attempts in all, with waits of 250 ms, 500
// ms and 1 s, without jitter.
func DefaultRetry() retry.Policy { return retry.Exponential(DefaultAttempts, DefaultFirstWait) }

// FuncRef is the handle of a durable function: a workflow of one task, whose function is retried until it succeeds
// or its retry policy gives up.
type FuncRef[In, Out any] struct {
	*Workflow[In]
	retry retry.Policy
}

// Untyped returns the definition without its payload types, which is what an engine opens; nil of a nil function.
func (f *FuncRef[In, Out]) Untyped() *workflow.Definition {
	if f == nil {
		return nil
	}
	return f.Workflow.Untyped()
}

// Func defines a workflow that consists of one durable function. The function runs in a worker, outside any transaction, and is
// retried after a failure according to [DefaultRetry], as changed by [Retry]. The results of its steps (see package step) are
// kept over attempts. A run is removed a week after its end, see [Keep].
//
//	charge, err := builder.Func("charge", func(ctx context.Context, o Order) (Receipt, error) { ... })
//	run, err := charge.Run(ctx, e, order)
//	receipt, err := run.Result(ctx, e)
//
// The error is an [*Error] with every problem. The function is called at least once for a run, so it should be idempotent: pass
// an idempotency key, such as the run's id (see [WorkFrom]), to the services that it calls.
func Func[In, Out any](
	name string, run func(context.Context, In) (Out, error), opts ...FuncOption,
) (*FuncRef[In, Out], error) {
	return newFunc(name, caller(), Work[In, Out]{Run: run}, opts)
}

// MustFunc is like [Func] but panics if the definition has a problem. It is for functions that are variables of a
// package, and for tests.
func MustFunc[In, Out any](
	name string, run func(context.Context, In) (Out, error), opts ...FuncOption,
) *FuncRef[In, Out] {
	return mustFunc(newFunc(name, caller(), Work[In, Out]{Run: run}, opts))
}

func mustFunc[In, Out any](f *FuncRef[In, Out], err error) *FuncRef[In, Out] {
	if err != nil {
		panic(err)
	}
	return f
}

// funcTask is the name of the one task of a function.
const funcTask = "run"

// newFunc defines a function of a work that has Run or Batch.
func newFunc[In, Out any](
	name string, pos net.Pos, work Work[In, Out], opts []FuncOption,
) (*FuncRef[In, Out], error) {
	spec := funcSpec{retry: DefaultRetry(), options: []Option{Keep(DefaultKeep)}}
	for _, opt := range opts {
		if opt != nil {
			opt.ofFunc(&spec)
		}
	}
	b := newBuilder[In](name, pos, spec.options)
	b.d.out = reflect.TypeFor[Out]()
	if work.Run == nil && work.Batch.isZero() {
		b.d.problem(NilFunction, name, pos, "builder.Func %q is given no function", name)
	}
	if err := cmp.Or(spec.badRetry, refusedRetry(spec.retry)); err != nil {
		b.d.problem(BadRetry, name, pos, "the retry policy of function %q is invalid: %s", name, oneLine(err))
	}
	if spec.wrong != nil {
		b.d.problem(BadProcess, name, pos, "the process of function %q: %s", name, oneLine(spec.wrong))
	}
	if spec.timeout < 0 {
		b.d.problem(NegativeDuration, name, pos, "the AttemptTimeout of function %q is %s; give zero or more", name, spec.timeout)
	}
	if key := batchKeyOf[In](b.d, pos, &spec, !work.Batch.isZero()); key != nil {
		work.Batch.Key = key
	}
	work.Input, work.RunTimeout, work.Queue = CaseInput(b), max(spec.timeout, 0), spec.queue
	work.OnWorkItemStateChanged, work.Limits, work.Hours = retryOf(spec.retry), spec.needs, spec.hours
	work.FairBy = fairOf[In](b.d, fmt.Sprintf("function %q", name), name, pos, spec.fair)
	task := newTask(b, funcTask, pos, work)
	task.n.task.Retry, task.n.task.Function.Name, task.n.task.OnlyFailures = spec.retry, name, true
	task.n.notes = append(task.n.notes, "retry: "+spec.retry.String())
	for _, need := range spec.holds {
		b.d.hold(need, task, task, pos)
	}
	b.d.flow(b.Start(), task, pos)
	b.d.flow(task, b.End(), pos)
	result := Output(task).s
	result.pos = pos
	b.d.result = &result
	w, err := b.Build()
	if err != nil {
		return nil, err
	}
	return &FuncRef[In, Out]{Workflow: w, retry: spec.retry}, nil
}

// refusedRetry says why a policy cannot work.
func refusedRetry(p retry.Policy) error { return activities.Refused(activities.Resume(p)) }

// retryOf answers a failed attempt with the next one, as the run's own policy says, or the function's.
func retryOf(p retry.Policy) func(context.Context, *activities.Change) error {
	return func(ctx context.Context, c *activities.Change) error {
		own, err := workflow.RetryOf(c.Case(), p)
		if err != nil {
			return err
		}
		return activities.Resume(own)(ctx, c)
	}
}

// Run starts a run, at once or at the time of [workflow.After] or [workflow.At], and returns its handle as soon as the
// run is stored. With an *engine.Tx the start is part of that transaction. The error wraps a *domain.InvalidError if the
// input is invalid, and retry.ErrInvalid if Retry makes an invalid policy; nothing is stored then.
func (f *FuncRef[In, Out]) Run(ctx context.Context, e workflow.Doer, input In, opts ...workflow.Option) (Run[Out], error) {
	if f == nil || f.Workflow == nil {
		return Run[Out]{}, fmt.Errorf("run a function: %w", errNotBuilt)
	}
	opts, err := f.ownRetry(opts)
	if err != nil {
		return Run[Out]{}, fmt.Errorf("run %s: %w: %w", f.Name, workflow.ErrBadCommand, err)
	}
	id, err := startCase(ctx, e, f.Definition, input, opts)
	if err != nil {
		return Run[Out]{}, fmt.Errorf("run %s: %w", f.Name, err)
	}
	return f.Of(id), nil
}

// ownRetry puts what [Retry] changes of the function's policy into one option, which has the run's own policy as data.
func (f *FuncRef[In, Out]) ownRetry(opts []workflow.Option) ([]workflow.Option, error) {
	own, changed := f.retry, false
	own.Filters, own.Rand = nil, nil
	rest := make([]workflow.Option, 0, len(opts))
	for _, opt := range opts {
		change, is := opt.(RetryOption)
		if !is {
			rest = append(rest, opt)
			continue
		}
		if change.change != nil {
			if err := change.applyTo(&own); err != nil {
				return nil, err
			}
			changed = true
		}
	}
	if !changed {
		return rest, nil
	}
	if own.Filters != nil || own.Rand != nil {
		return nil, fmt.Errorf("%w: Filters and Rand are functions, which a run cannot be stored with: give them to the function",
			retry.ErrInvalid)
	}
	if err := refusedRetry(own); err != nil {
		return nil, err
	}
	doc, err := workflow.EncodeRetry(own)
	return append(rest, workflow.OptionFunc(func(c *workflow.Command) error {
		c.Options.Retry = doc
		return nil
	})), err
}

// Of returns the handle of the run with an id. It does not check that there is such a run; the methods of the
// handle do.
func (f *FuncRef[In, Out]) Of(id workitem.CaseID) Run[Out] {
	if f == nil || f.Workflow == nil {
		return Run[Out]{ID: id}
	}
	return Run[Out]{ID: id, d: f.Definition}
}

// FuncOption is an option of a function: every [Option] of a workflow (Version, Describe, Keep, Handles), and
// Retry, OnQueue, AttemptTimeout and others.
type FuncOption interface{ ofFunc(*funcSpec) }

type funcSpec struct {
	options  []Option
	retry    retry.Policy
	queue    string
	timeout  time.Duration
	needs    []Need
	holds    []Need
	hours    schedule.Window
	fair     FairKey
	wrong    error        // why the process of Exec cannot be run
	badRetry error        // why a function of Retry could not change the policy
	batchKey any          // a function of the input
	batchIn  reflect.Type // its type; nil if there is none
}

func (o Option) ofFunc(s *funcSpec) { s.options = append(s.options, o) }

type funcOption func(*funcSpec)

func (f funcOption) ofFunc(s *funcSpec) { f(s) }

// OnQueue sets the queue of the function's jobs; engine.Config sets how many jobs of a queue run at a time. The
// default is the default queue, "".
func OnQueue(name string) FuncOption { return funcOption(func(s *funcSpec) { s.queue = name }) }

// Hours restricts the function to a time window: it is called from 08:00 to 18:00 in Europe/Berlin, say, on some days.
//
//	builder.Hours(schedule.MustParseWindow("mon-fri 08:00-18:00", "Europe/Berlin"))
//
// A job that becomes due while the window is closed waits until it opens, without a worker and without using an attempt. The same holds
// for the next attempt after a failure, and for a function that resumes after a wait in its steps. A call that is in progress when the
// window closes is not interrupted. Timeouts of tasks keep running while the window is closed. The window follows local time: on a day
// of a clock change it is shorter or longer. It is part of the definition and its fingerprint.
func Hours(w schedule.Window) FuncOption { return funcOption(func(s *funcSpec) { s.hours = w }) }

// AttemptTimeout limits the duration of one attempt: after it, the context is canceled and the attempt fails with the
// code "timeout". The default, 0, is no limit. For a function that waits in steps it limits each run between two
// waits: the time in which the function is suspended does not count.
func AttemptTimeout(d time.Duration) FuncOption {
	return funcOption(func(s *funcSpec) { s.timeout = d })
}

// RetryOption is an option of a function, and of one run of it.
type RetryOption struct{ change func(*retry.Policy) }

// Retry changes the retry policy of a function, or of one run of it. change modifies the current policy: [DefaultRetry]
// as an option of a function, the policy of the function as an option of a run.
//
//	charge.Run(ctx, e, order, builder.Retry(func(p *retry.Policy) { p.Attempts, p.Base = 6, 3 }))
//
// An invalid policy is an error at once, and so is a panic of change. Filters and Rand cannot be changed for a run, since functions cannot be stored
// with it. [RetryPolicy] replaces the whole policy.
func Retry(change func(p *retry.Policy)) RetryOption { return RetryOption{change} }

// RetryPolicy replaces the retry policy of a function, or of one run of it. The policy of a run has no filters and no Rand, as with
// [Retry]: those of the function apply.
//
//	builder.MustFunc("charge", charge, builder.RetryPolicy(retry.Exponential(6, time.Second)))
func RetryPolicy(p retry.Policy) RetryOption {
	return Retry(func(current *retry.Policy) { *current = p })
}

func (o RetryOption) ofFunc(s *funcSpec) {
	if err := o.applyTo(&s.retry); err != nil && s.badRetry == nil {
		s.badRetry = err
	}
}

// applyTo changes a policy. A panic of the function is an error, as a policy that it leaves invalid is.
func (o RetryOption) applyTo(p *retry.Policy) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: the function of builder.Retry panicked: %v", retry.ErrInvalid, cause)
		}
	}()
	if o.change != nil {
		o.change(p)
	}
	return nil
}

// Apply implements [workflow.Option]. It always fails: only Run of a function, which does not call it, accepts a RetryOption.
func (o RetryOption) Apply(*workflow.Command) error {
	return fmt.Errorf("%w: Retry is an option of a function and of its Run; leave it out, and change the policy of the tasks",
		workflow.ErrBadCommand)
}
