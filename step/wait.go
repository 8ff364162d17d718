package step

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// Sleep waits for d, measured by the engine's clock from when the job first reached this call; a later run, even
// with changed code, waits for the rest of that time. The job is suspended meanwhile: a sleep of a year costs one
// record.
//
// A d of zero returns at once; a negative d is an error.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	return sleep(ctx, here(), name, func(now time.Time) (time.Time, error) {
		if d < 0 {
			return now, fmt.Errorf("%v is negative", d)
		}
		return now.Add(d), nil
	})
}

// SleepUntil waits until t, as Sleep does. It returns at once if t has passed; the zero time and times beyond
// workitem.LastYear are errors.
func SleepUntil(ctx context.Context, name string, t time.Time) error {
	return sleep(ctx, here(), name, func(time.Time) (time.Time, error) {
		if t.IsZero() {
			return t, fmt.Errorf("the time is zero")
		}
		return t, workitem.CheckDue(t)
	})
}

func sleep(ctx context.Context, at uintptr, name string, until func(now time.Time) (time.Time, error)) error {
	ask := workitem.Step{Name: name, Kind: workitem.StepSleep}
	_, err := perform[any](ctx, at, ask, nil, nil, func(c *call) (*workitem.Step, error) {
		now := c.run.journal.Now()
		due, err := until(now)
		if err != nil {
			return nil, c.run.misuse("step %q, at %s: %v", name, place(at), err)
		}
		return c.sleep(now, due)
	})
	return err
}

// sleep waits until a time. One that has come is remembered without a commit, since nothing has to wake the job.
func (c *call) sleep(now, due time.Time) (*workitem.Step, error) {
	if due.After(now) {
		return c.awaitEnd(func() *workitem.Step { return c.waiting(now, due) })
	}
	return c.value(func() (json.RawMessage, error) { return nil, nil })
}

// waiting is the record of the step as it begins to wait.
func (c *call) waiting(now, due time.Time) *workitem.Step {
	s := *c.ask
	s.State, s.Created, s.Due = workitem.StepWaiting, now, due
	return &s
}

// Await waits for an event that is sent to the case, and returns its value; the zero T if that is null. An event that
// was sent before a step waits for it is kept for the first step that does, and each event completes one wait. The
// name of the step is that of the event, unless it is Named.
//
//	paid, err := step.Await[Payment](ctx, "paid", step.Timeout(24*time.Hour))
//	if errors.Is(err, step.ErrTimeout) {
//		return cancelOrder(ctx)
//	}
//
// The value must be a valid T (package domain); otherwise the error is an *Error with the code "invalid". An event
// that arrives after the timeout is kept for the next wait.
//
// Options: [Timeout], [Named], [Topic].
func Await[T any](ctx context.Context, event string, opts ...Option) (T, error) {
	var none T
	s, err := await(ctx, here(), event, opts, checkCall[T])
	if err != nil {
		return none, err
	}
	if s.State != workitem.StepDone || len(s.Result) == 0 || string(s.Result) == "null" {
		return result[T](scopeOf(ctx).run, s)
	}
	v, err := domain.Restore[T](s.Result)
	if err == nil {
		err = domain.Validate(v)
	} else {
		err = fmt.Errorf("the value of event %q can't be read as the type that is asked for: %w", event, err)
	}
	if err != nil {
		f := workitem.FailureOf(err)
		f.Code, f.Retryable = workitem.CodeInvalid, false // it stays as it was sent
		refused := *s
		refused.Failure = f
		return none, errorOf(&refused)
	}
	return v, nil
}

func await(ctx context.Context, at uintptr, event string, opts []Option, asks func(*call) error) (*workitem.Step, error) {
	ask := workitem.Step{Name: event, Kind: workitem.StepEvent, Target: event}
	for _, o := range opts {
		ask.Topic = ask.Topic || o.name == "Topic"
	}
	c, err := begin(ctx, at, ask, opts, takesAwait)
	if err != nil {
		return nil, err
	}
	defer c.end()
	if err := checkName(event); err != nil {
		return nil, c.run.misuse("step %q, at %s: the event: %v", c.ask.Name, place(at), err)
	}
	if err := asks(c); err != nil {
		return nil, err
	}
	s, err := c.awaitEnd(c.waitTimed)
	if err != nil {
		return nil, c.wrap(err)
	}
	return s, nil
}

// waitTimed is the record of a wait that begins now, with its deadline if it has one. It says when it began, since it
// is stored a little later: a wait of 20ms is reported as one of 20ms, not of 19.988ms.
func (c *call) waitTimed() *workitem.Step {
	now := c.run.journal.Now()
	if !c.opts.timed {
		return c.waiting(now, time.Time{})
	}
	return c.waiting(now, now.Add(c.opts.timeout))
}
