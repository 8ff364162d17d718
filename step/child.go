package step

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// Call runs a case of another workflow, a child of this case, and returns its result.
//
//	parcel, err := step.Call[Parcel](ctx, "ship", "shipping", order)
//	if child, ok := errors.AsType[*step.ChildError](err); ok && child.State == workitem.StepCanceled {
//		...
//	}
//
// If the child fails or is canceled, the error is a [*ChildError]. When the job ends, or its case, while the child
// still runs, the child is canceled.
//
// Options: [Timeout], [Loose], [After].
func Call[T any](ctx context.Context, name, workflow string, input any, opts ...Option) (T, error) {
	var none T
	s, err := callCase(ctx, here(), name, workflow, input, opts, checkCall[T])
	switch {
	case err != nil:
		return none, err
	case s.State != workitem.StepDone:
		return none, childErrorOf(s)
	}
	return result[T](scopeOf(ctx).run, s)
}

func callCase(
	ctx context.Context, at uintptr, name, workflow string, input any, opts []Option,
	asks func(*call) error,
) (*workitem.Step, error) {
	s, err := currentRun(ctx, title{name: name})
	if err != nil {
		return nil, err
	}
	raw, err := domain.Encode(input)
	if err != nil {
		return nil, s.run.misuse("step %q, at %s: the input of %s: %v", name, place(at), workflow, err)
	}
	if workflow == "" {
		return nil, s.run.misuse("step %q, at %s: the workflow has no name", name, place(at))
	}
	ask := workitem.Step{Name: name, Kind: workitem.StepCase, Target: workflow, Input: raw}
	c, err := begin(ctx, at, ask, opts, takesCall)
	if err != nil {
		return nil, err
	}
	defer c.end()
	if err := asks(c); err != nil {
		return nil, err
	}
	if c.opts.delay > 0 {
		if err := c.delay(); err != nil {
			return nil, c.wrap(err)
		}
	}
	stored, err := c.awaitEnd(c.waitTimed)
	if err != nil {
		return nil, c.wrap(err)
	}
	return stored, nil
}

// delay sleeps before the child is started, as a step of its own within the call.
func (c *call) delay() error {
	r := c.run
	before := *c
	before.ask = &workitem.Step{Name: c.ask.Name + " (delay)", Kind: workitem.StepSleep,
		Job: c.ask.Job, Case: c.ask.Case, Run: c.ask.Run}
	r.mu.Lock()
	entry, err := r.meet(&before)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	before.entry = entry
	now := r.journal.Now()
	_, err = before.sleep(now, now.Add(c.opts.delay))
	return err
}

// ChildError says that the child case of a Call did not complete. It wraps a *workitem.Failure if the child failed,
// and ErrCanceled if it was canceled; it matches ErrTimeout if the Timeout of the call has passed.
type ChildError struct {
	Step     string
	Workflow string
	Case     workitem.CaseID    // zero if the child could not be started
	State    workitem.StepState // workitem.StepFailed or workitem.StepCanceled
	Failure  *workitem.Failure  // the child's; nil if it was canceled
	timeout  bool
}

func childErrorOf(s *workitem.Step) *ChildError {
	e := &ChildError{Step: s.Name, Workflow: s.Target, Case: s.Child, State: s.State}
	if s.State == workitem.StepFailed {
		e.Failure = errorOf(s).Failure
		// A child may fail with the same code long before the deadline.
		e.timeout = e.Failure.Code == workitem.CodeTimeout && !s.Due.IsZero() && !s.Ended.Before(s.Due)
	}
	return e
}

// Error returns `step "ship": case 0197… of shipping failed: no-stock: none left`.
func (e *ChildError) Error() string {
	if e.Failure == nil {
		return e.head()
	}
	return fmt.Sprintf("%s: %v", e.head(), e.Failure)
}

func (e *ChildError) head() string {
	switch {
	case e.Case.IsZero():
		return fmt.Sprintf("step %q: no case of %s", e.Step, e.Workflow)
	case e.timeout:
		return fmt.Sprintf("step %q: case %v of %s was canceled", e.Step, e.Case, e.Workflow)
	}
	return fmt.Sprintf("step %q: case %v of %s %v", e.Step, e.Case, e.Workflow, e.State)
}

// Unwrap returns the child's failure with a message that names the step, or ErrCanceled.
func (e *ChildError) Unwrap() error {
	if e.Failure == nil {
		return ErrCanceled
	}
	return labelled(e.head(), e.Failure)
}

// Is reports whether the target is ErrTimeout and the call has timed out.
func (e *ChildError) Is(target error) bool { return target == ErrTimeout && e.timeout }
