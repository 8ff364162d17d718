package step

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// Limiter admits the calls of steps that take of limits. The engine has one for each run.
type Limiter interface {
	// Take takes all that a step needs at once. If there is no room, it returns nil if room is nil, and otherwise a lease
	// that waits. Who waits is admitted in the order of since; then the lease holds what was asked for, and room is called, which does
	// not block. The error says what can never be admitted.
	Take(step string, takes []workitem.Take, since time.Time, room func()) (Lease, error)
}

// Lease is what a step has taken, or waits for.
type Lease interface {
	limit.Taken

	// Begin notes that the step's function is called now, when rates count it. False means that what was granted was good for a time that
	// is over: then it is to be released, and taken anew.
	Begin() bool

	// Release gives back what is held, or stops the wait. A failure is for breakers. What was not begun counts for nothing.
	Release(failed bool)
}

// Take is what a step takes of a limit. [Takes] and [TakesBy] make it, and [Take.AnyOf] one of a pool.
type Take struct {
	take workitem.Take
	pool bool // AnyOf was called
}

// Takes takes n of a limit; 0 is its Each, which is 1 for limit.Resource, limit.Calls and limit.Breaker. The function of the job has to
// declare the limit, with builder.TakenBySteps.
func Takes(l limit.Limit, n int64) Take { return TakesBy(l, n, "") }

// TakesBy takes n of the limit of a key: each key, such as a customer, has a limit of its own with the same numbers.
func TakesBy(l limit.Limit, n int64, key string) Take {
	if n == 0 {
		n = l.Each
	}
	return Take{take: workitem.Take{Limit: l.Name, Key: key, N: n}}
}

// AnyOf takes of the limit of one of several keys, such as three API keys, whichever can admit first. Each key has a limit of its own with
// the same numbers. Takes of a step with the same keys are taken of the same one; [limit.KeyOf] says which it is.
func (t Take) AnyOf(keys ...string) Take {
	t.take.Any, t.pool = slices.Clone(keys), true
	return t
}

// check says what is wrong with a take.
func (t Take) check() error {
	switch {
	case t.take.Limit == "" || t.take.N <= 0:
		return fmt.Errorf("%d of %q: name a limit, and take more than 0 of it, or set its Each", t.take.N, t.take.Limit)
	case !t.pool:
		return nil
	case t.take.Key != "":
		return fmt.Errorf("%q is taken of the key %q and of any of others; use step.Takes with AnyOf, or step.TakesBy without it", t.take.Limit, t.take.Key)
	}
	return limit.CheckKeys(t.take.Limit, t.take.Any)
}

// Limits has each attempt of a [Do] take of limits before the function is called; they are released when it returns, and are free
// between attempts. If there is no room, the step waits: once no branch of the job has anything else to do, the job is suspended, holds
// no worker, and goes on when there is room. [limit.Commit] with the context of the function corrects how much of a rate was used.
//
//	answer, err := step.Do(ctx, "ask", ask, step.Limits(step.Takes(tokens, 4000), step.TakesBy(customers, 1, order.Customer)))
//
// Limits may change between runs, as they are not part of what is recorded of a step. Tests with package steptest take nothing.
func Limits(takes ...Take) Option {
	return Option{"Limits", func(o *options) error {
		for i, t := range takes {
			if err := t.check(); err != nil {
				return err
			}
			if slices.ContainsFunc(takes[:i], func(other Take) bool { return other.take.Limit == t.take.Limit }) {
				return fmt.Errorf("%q is taken twice; take the sum of both", t.take.Limit)
			}
			o.takes = append(o.takes, t.take)
		}
		return nil
	}}
}

// admit takes what the step needs, and a slot for its function. If there is no room, the step waits in line from now on, and false is
// returned.
func (c *call) admit(now time.Time) (bool, error) {
	since := now
	if c.before.Limited() {
		since = c.before.Due
	}
	if from := c.run.info.Limits; from != nil && len(c.opts.takes) > 0 && c.lease == nil {
		var err error
		if c.lease, err = from.Take(c.ask.Name, c.opts.takes, since, nil); err != nil {
			return false, c.never(err)
		}
		if c.lease == nil {
			return false, c.wait(since)
		}
	}
	if err := c.takeSlot(); err != nil {
		return false, err
	}
	if c.lease == nil || c.lease.Begin() {
		return true, nil
	}
	c.releaseSlot()
	c.leave()
	return false, c.wait(since)
}

// never is the error of a step that no limit will admit.
func (c *call) never(err error) error {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	return c.run.hold(workitem.Fatal(fmt.Errorf("at %s: %w", place(c.place), err)))
}

// wait records that the step waits for its limits, if it has not been, and waits in line. It is recorded first: what is not could be
// called by a suspended run and by the next one.
func (c *call) wait(since time.Time) (err error) {
	r := c.run
	if !slices.EqualFunc(c.before.Takes(), c.opts.takes, workitem.Take.Equal) {
		s := *c.before
		s.State, s.Due = workitem.StepWaiting, since
		if s.Created.IsZero() {
			s.Created = since
		}
		if s.Result, err = json.Marshal(c.opts.takes); err != nil {
			return err
		}
		if _, err := r.record(&s); err != nil {
			return err
		}
	}
	r.mu.Lock()
	c.entry.room = false
	r.mu.Unlock()
	if c.lease, err = r.info.Limits.Take(c.ask.Name, c.opts.takes, since, c.roomCame); err != nil {
		return c.never(err)
	}
	return nil
}

// roomCame is called when the lease of a step that waited is held.
func (c *call) roomCame() {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	c.entry.room = true
	if c.entry.waiter != nil {
		r.wakeUp(c.entry.waiter)
	}
	r.turns.moves++
	if r.idle() {
		r.work.Go(r.suspend)
	}
}

// leave gives back what a call holds or waits for, if its function was not called.
func (c *call) leave() {
	if c.lease != nil {
		c.lease.Release(false)
		c.lease = nil
	}
}
