package step

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workitem"
)

// Limiter admits the function calls of steps with limits. The engine provides one for each run.
type Limiter interface {
	// Take acquires all limits of a step together. If they are not available, it returns nil if room is nil, and
	// otherwise a waiting lease. Waiting leases are admitted in the order of since; then the lease holds the limits,
	// and room is called, which does not block. It is an error if an amount can never be admitted.
	Take(step string, takes []workitem.Take, since time.Time, room func()) (Lease, error)
}

// Lease is what a step has acquired of limits, or waits for.
type Lease interface {
	limit.Taken

	// Begin reports that the step's function is called now, which is when rates count it. False means that the grant
	// has expired: release the lease, and take a new one.
	Begin() bool

	// Release releases what is held, or stops waiting. failed is reported to circuit breakers. Without Begin nothing is
	// counted.
	Release(failed bool)
}

// Take says how much of a limit a step acquires, or code that uses engine.Limits. Takes and TakesBy make one, and Take.AnyOf makes it
// one of a pool.
type Take struct {
	take  workitem.Take
	limit limit.Limit
	pool  bool // AnyOf was called
}

// Takes acquires n of a limit; 0 is its Each, which is 1 for limit.Resource, limit.Calls and limit.Breaker. The
// function of the job must declare the limit with builder.TakenBySteps.
func Takes(l limit.Limit, n int64) Take { return TakesBy(l, n, "") }

// TakesBy acquires n of the limit of a key: each key, such as a customer, has a limit of its own with the same
// numbers.
func TakesBy(l limit.Limit, n int64, key string) Take {
	if n == 0 {
		n = l.Each
	}
	return Take{take: workitem.Take{Limit: l.Name, Key: key, N: n}, limit: l}
}

// AnyOf acquires the limit of one of several keys, such as three API keys: the first that admits the step. Each key has
// a limit of its own with the same numbers. Takes of a step with the same keys get the same key; limit.KeyOf returns
// it.
func (t Take) AnyOf(keys ...string) Take {
	t.take.Any, t.pool = slices.Clone(keys), true
	return t
}

// Needs returns what is taken, of which limit. N is 0 if neither Takes nor the limit says how much. The error says what is wrong with the
// keys. It is for engines.
func (t Take) Needs() (workitem.Take, limit.Limit, error) { return t.take, t.limit, t.checkKeys() }

// check says what is wrong with the take of a step.
func (t Take) check() error {
	if t.take.Limit == "" || t.take.N <= 0 {
		return fmt.Errorf("%d of %q: name a limit, and take more than 0 of it, or set its Each", t.take.N, t.take.Limit)
	}
	return t.checkKeys()
}

func (t Take) checkKeys() error {
	switch {
	case !t.pool:
		return nil
	case t.take.Key != "":
		return fmt.Errorf("%q is taken of the key %q and of any of others; use step.Takes with AnyOf, or step.TakesBy without it", t.take.Limit, t.take.Key)
	}
	return limit.CheckKeys(t.take.Limit, t.take.Any)
}

// Limits makes each attempt of a Do acquire limits before the function is called. They are released when it returns,
// and are not held between attempts. If they are not available, the step waits: when no branch of the job can continue,
// the job is suspended and uses no worker, until the limits are available. Call [limit.Commit] with the context of the
// function to correct how much of a rate was used.
//
//	answer, err := step.Do(ctx, "ask", ask, step.Limits(step.Takes(tokens, 4000), step.TakesBy(customers, 1, order.Customer)))
//
// Limits may change between runs, since they are not recorded. Package steptest ignores them.
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

// admit takes what the step needs, and a slot for its function. If there is no room, the step waits in line from now
// on, and false is returned.
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
	return c.run.keepMistake(workitem.Fatal(fmt.Errorf("at %s: %w", place(c.place), err)))
}

// wait records that the step waits for its limits, if it has not been, and waits in line. It is recorded first: what is
// not could be called by a suspended run and by the next one.
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
	if c.lease, err = r.info.Limits.Take(c.ask.Name, c.opts.takes, since, c.limitsAcquired); err != nil {
		return c.never(err)
	}
	return nil
}

// limitsAcquired is called when the lease of a step that waited is held.
func (c *call) limitsAcquired() {
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
