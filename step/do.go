package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/readable"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Do calls fn and records its result, under a name that is unique in the job. When the job runs again, after a wait, a
// crash or a failed attempt, Do returns the recorded result without calling fn.
//
//	charge, err := step.Do(ctx, "charge", func(ctx context.Context) (Charge, error) {
//		return bank.Charge(ctx, amount, step.Key(ctx, "charge"))
//	})
//
// fn is called once for each recorded attempt. If the process dies between the call and the record, fn is called again:
// where that matters, pass an idempotency key ([Key]) to the other service. Do may return before the record is durable;
// the next step and the end of the function wait for it, so there must be no effects outside of steps.
//
// The value is recorded as JSON, and Do returns what it decodes from that, the first time as well: fields that JSON
// omits are lost. The value must be valid (package domain), and within the size limit; otherwise the step fails, with
// the code "invalid" or "too-large". A T that JSON cannot represent is reported before fn is called.
//
// If fn fails, and no Retry is left, the step has failed: Do returns an *Error, now and on every replay within this
// attempt of the job. The next attempt of the job, if there is one, calls fn again.
//
// fn gets a context of its own, with which no step may be called.
//
// Options: [Retry], [Timeout], [Input], [Loose], [Limits].
func Do[T any](ctx context.Context, name string, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	ask := workitem.Step{Name: name, Kind: workitem.StepDo}
	return perform[T](ctx, here(), ask, opts, takesDo, func(c *call) (*workitem.Step, error) {
		if err := c.check(fn == nil); err != nil {
			return nil, err
		}
		return c.do(func(ctx context.Context) (json.RawMessage, error) {
			v, err := fn(ctx)
			if err != nil {
				return nil, err
			}
			return c.encode(v)
		})
	})
}

// check refuses a call of a function that cannot be made.
func (c *call) check(noFn bool) error {
	switch {
	case noFn:
		return c.run.nothingToCall(title{name: c.ask.Name}, c.place)
	case c.opts.timed && c.opts.timeout == 0:
		return c.run.misuse("step %q, at %s: a Timeout of 0 leaves no time; use more, or leave it out",
			c.ask.Name, place(c.place))
	}
	return nil
}

// do makes attempts until the step has ended.
func (c *call) do(fn func(context.Context) (json.RawMessage, error)) (*workitem.Step, error) {
	r := c.run
	for {
		now := r.journal.Now()
		r.mu.Lock()
		s, err := c.turn(now)
		r.mu.Unlock()
		c.writeLines()
		if s != nil || err != nil {
			return s, err
		}
		switch admitted, err := c.admit(now); {
		case err != nil:
			return nil, err
		case !admitted:
			continue
		}
		next, err := c.attempt(now, fn)
		if err != nil {
			return nil, err
		}
		if next.State.Final() && c.queue(next) {
			return next, nil
		}
		if next.State == workitem.StepWaiting && next.Due.After(r.journal.Now()) {
			err = c.open(next)
		} else {
			_, err = r.record(next)
		}
		if err != nil {
			return nil, err
		}
	}
}

// turn waits until another attempt may be made, or returns the step if it has ended. The lock is held.
func (c *call) turn(now time.Time) (*workitem.Step, error) {
	r := c.run
	if c.entry.step != nil {
		if err := c.waitEnded(now); err != nil {
			return nil, err
		}
	}
	if s := c.final(); s != nil {
		return s, nil
	}
	if c.branch.status == working {
		r.move(c.branch, running)
	}
	if err := c.fresh(); err != nil {
		return nil, err
	}
	r.move(c.branch, working)
	r.echoes(c.branch, false)
	if c.before = c.entry.step; c.before == nil {
		c.before = c.ask
	}
	return nil, nil
}

// attempt calls the function once, and returns what is to be recorded of that.
func (c *call) attempt(start time.Time, fn func(context.Context) (json.RawMessage, error)) (*workitem.Step, error) {
	r := c.run
	next := *c.before
	next.Attempt++
	next.Due, next.Failure, next.Result = time.Time{}, nil, nil
	if next.Created.IsZero() {
		next.Created = start
	}
	raw, late, err := c.admitted(fn)
	if err := c.discarded(err); err != nil {
		return nil, err
	}
	if err == nil {
		next.State, next.Result = workitem.StepDone, raw
		r.attempted(c.ctx, &next, 0, false)
		return &next, nil
	}
	f := workitem.FailureOf(err)
	if late {
		f = overtime(f, c.opts.timeout)
	}
	next.State, next.Failure = workitem.StepFailed, f
	now := r.journal.Now()
	wait, again := c.again(&next, f, err, now)
	if again {
		next.State, next.Due = workitem.StepWaiting, now.Add(wait)
	}
	r.attempted(c.ctx, &next, wait, again)
	return &next, nil
}

// callFn calls a step's function with its own context, and reports whether its time was over.
func (c *call) callFn(fn func(context.Context) (json.RawMessage, error)) (raw json.RawMessage, late bool, err error) {
	ctx := c.inner(c.ctx)
	if c.opts.timed {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, c.opts.timeout)
		defer cancel()
	}
	if around := c.run.info.Around; around != nil {
		err = around(ctx, c.ask.Name, func(ctx context.Context) error {
			raw, err = fn(ctx)
			return err
		})
	} else {
		raw, err = fn(ctx)
	}
	err = cmp.Or(readable.Error(err), err)
	return raw, c.opts.timed && errors.Is(ctx.Err(), context.DeadlineExceeded), err
}

// takeSlot waits until one more function may run. The error says why none is to run any more.
func (c *call) takeSlot() error {
	r := c.run
	if r.info.Slots == nil {
		return nil
	}
	select {
	case r.info.Slots <- struct{}{}:
		return nil
	case <-r.done:
	case <-c.ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.endedBy != nil:
		return r.endedBy
	case c.branch.canceled:
		return c.branch.notChosen.of(c.branch)
	}
	return ended(c.ctx)
}

func (c *call) releaseSlot() {
	if slots := c.run.info.Slots; slots != nil {
		<-slots
	}
}

// admitted calls a step's function, and gives back its slot and what it took of limits.
func (c *call) admitted(fn func(context.Context) (json.RawMessage, error)) (raw json.RawMessage, late bool, err error) {
	defer c.releaseSlot()
	in := c
	if lease := c.lease; lease != nil {
		c.lease = nil
		defer func() { lease.Release(err != nil) }()
		in = c.within(limit.NewContext(c.ctx, lease))
	}
	return in.callFn(func(ctx context.Context) (json.RawMessage, error) { return guarded(ctx, fn) })
}

// guarded calls a step's function, and makes an error of a panic.
func guarded(ctx context.Context, fn func(context.Context) (json.RawMessage, error)) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = retry.NewPanicError(p)
		}
	}()
	if raw, err = fn(ctx); err != nil {
		err = cmp.Or(readable.Error(err), err)
	}
	return raw, err
}

// inner marks a context as that of a step's function.
func (c *call) inner(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, &scope{run: c.run, branch: c.branch, inside: c.ask.Name})
}

// discarded returns why what a step's function returned is not recorded; nil if it is.
func (c *call) discarded(err error) error {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong, misused := errors.AsType[*mistake](err)
	switch {
	case r.endedBy != nil:
		return r.endedBy
	case c.branch.canceled:
		return c.branch.notChosen.of(c.branch)
	case misused:
		return r.keepMistake(wrong)
	case err != nil && c.ctx.Err() != nil: // it says nothing of the work
		if why := ended(c.ctx); !errors.Is(err, why) {
			return errors.Join(why, err)
		}
		return err
	}
	return nil
}

// again asks the policy for another attempt.
func (c *call) again(s *workitem.Step, f *workitem.Failure, err error, now time.Time) (time.Duration, bool) {
	if !c.opts.retryGiven || !f.Retryable {
		return 0, false
	}
	_, refused := errors.AsType[*refusedResult](err)
	failure := retry.Failure{
		Attempt: s.Attempt, Elapsed: max(now.Sub(s.Created), 0), Err: err, Name: s.Name, Input: c.opts.input,
		Refused: refused,
	}
	policy := c.opts.policy
	accepted, broken := policy.Judge(failure)
	if broken != nil {
		f.Message = workitem.FailureOf(broken.Beside(f)).Message
		c.run.info.Log.Error("a filter of a retry policy panicked, and accepts nothing", append(c.run.who(), "step", s.Name, "attempt", s.Attempt,
			"error", broken, "stack", string(broken.Panic.Stack))...)
	}
	if !accepted {
		return 0, false
	}
	policy.Filters = nil // asked above
	return policy.Next(failure)
}

// Tx calls fn in a transaction of the engine's database. What fn writes with db is committed together with
// the record of the step, so it happens exactly once. If fn fails, its writes are rolled back.
//
//	id, err := step.Tx(ctx, "save", func(ctx context.Context, db domain.DB) (int, error) {
//		return insert(ctx, db, order)
//	})
//
// The transaction blocks others, so fn should only use db, and be fast. Otherwise Tx is like Do, but without
// a retry policy: an error fails the step at once, and the next attempt of the job calls fn again.
//
// Options: [Timeout], [Input], [Loose].
func Tx[T any](
	ctx context.Context, name string, fn func(ctx context.Context, db domain.DB) (T, error), opts ...Option,
) (T, error) {
	ask := workitem.Step{Name: name, Kind: workitem.StepTx}
	return perform[T](ctx, here(), ask, opts, takesTx, func(c *call) (*workitem.Step, error) {
		if err := c.check(fn == nil); err != nil {
			return nil, err
		}
		return c.tx(func(ctx context.Context, db domain.DB) (json.RawMessage, error) {
			v, err := fn(ctx, db)
			if err != nil {
				return nil, err
			}
			return c.encode(v)
		})
	})
}

func (c *call) tx(fn func(context.Context, domain.DB) (json.RawMessage, error)) (*workitem.Step, error) {
	r := c.run
	now := r.journal.Now()
	r.mu.Lock()
	s, err := c.turn(now)
	r.mu.Unlock()
	c.writeLines()
	if s != nil || err != nil {
		return s, err
	}
	// What fn sees of earlier values is to be remembered at least as well as what it does with them.
	if _, err := r.record(); err != nil {
		return nil, err
	}
	ask := *c.ask
	ask.State, ask.Attempt, ask.Created = workitem.StepDone, 1, now
	stored, err := r.journal.Tx(c.ctx, &ask, func(ctx context.Context, db domain.DB) (json.RawMessage, error) {
		inner := func(ctx context.Context) (json.RawMessage, error) { return fn(ctx, db) }
		raw, late, err := c.within(ctx).callFn(inner)
		if err == nil {
			return raw, nil
		}
		f := workitem.FailureOf(err)
		if late {
			f = overtime(f, c.opts.timeout)
		}
		return nil, f
	})
	if err != nil {
		return nil, c.broken(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep([]*workitem.Step{stored})
	return c.final(), nil
}

// within is the call with another context.
func (c *call) within(ctx context.Context) *call {
	d := *c
	d.ctx = ctx
	return &d
}

// broken is what an error of Journal.Tx means: nothing for the others, if it was the branch's own context that ended.
func (c *call) broken(err error) error {
	if c.ctx.Err() == nil {
		return c.run.fail(err)
	}
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	if halted := c.run.halted(c.ctx, c.branch); halted != nil {
		return halted
	}
	return err
}
