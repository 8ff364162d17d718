package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/internal/argument"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Limits returns a limiter for code outside of jobs, such as the handlers of a server: with [limit.Do] they acquire the same limits as the
// functions of the engine, and, of limits that are shared, as the functions and handlers of all engines of the store.
//
//	text, err := limit.Do(ctx, engine.Limits(e, step.Takes(calls, 1), step.TakesBy(customers, 1, name)), ask)
//
// The limits must be those of functions of the engine, or of [Config].Limits. The amounts of an acquisition replace those of the takes. Errors of the takes
// are those of the first acquisition: an unknown limit is limit.ErrUnknownLimit, a limit that is defined differently limit.ErrInvalid.
//
//   - In the lines of limits, an acquisition has the place of a job of priority 0 that is due at the time of the call.
//   - A lease that is not released ends with the engine; Close does not wait for it. When the process dies, its slots are free as those of jobs are.
//   - When the engine closes, Acquire returns an error that wraps ErrClosed.
//   - An acquisition of more than an operator has lowered the limit to waits until it is raised.
//   - TryAcquire, Wait and Why ask the store if a limit is shared, and the engine has nothing of it; while the store does not answer, TryAcquire returns nil.
func Limits(e *Engine, takes ...step.Take) limit.Limiter {
	l := &limiter{e: e}
	for _, t := range takes {
		if l.err = l.add(t); l.err != nil {
			break
		}
	}
	return l
}

// limiter acquires limits of an engine for code outside of jobs.
type limiter struct {
	e     *Engine
	takes []workitem.Take
	err   error // what is wrong with the takes
}

func (l *limiter) add(t step.Take) error {
	take, def, err := t.Needs()
	if err != nil {
		return fmt.Errorf("%w: %w", limit.ErrInvalid, err)
	}
	if l.e == nil {
		return fmt.Errorf("%w %q: the engine is nil: look at the error of Open", limit.ErrInvalid, take.Limit)
	}
	if slices.ContainsFunc(l.takes, func(other workitem.Take) bool { return other.Limit == take.Limit }) {
		return fmt.Errorf("%w %q: it is taken twice: take the sum of both", limit.ErrInvalid, take.Limit)
	}
	i := slices.IndexFunc(l.e.limits, func(known limit.Limit) bool { return known.Name == take.Limit })
	switch {
	case i < 0:
		return fmt.Errorf("limit: no function of the engine takes of limit %q: add it to engine.Config.Limits: %w", take.Limit, limit.ErrUnknownLimit)
	case l.e.limits[i] != def:
		return fmt.Errorf("%w %q: it is %v here, and %v in the engine: use the same definition, or another name", limit.ErrInvalid, take.Limit, def, l.e.limits[i])
	}
	l.takes = append(l.takes, take)
	return nil
}

// amounts returns the takes of an acquisition with its amounts.
func (l *limiter) amounts(amounts []limit.Amount) ([]workitem.Take, error) {
	if l.err != nil {
		return nil, l.err
	}
	takes := slices.Clone(l.takes)
	missing := func(t workitem.Take) bool {
		return t.N == 0 && !slices.ContainsFunc(amounts, func(a limit.Amount) bool { return a.Limit == t.Limit })
	}
	if i := slices.IndexFunc(takes, missing); i >= 0 {
		return nil, fmt.Errorf("limit: the amount of %s is missing: acquire with limit.Take(%q, n), or set its Each: %w",
			takes[i].Limit, takes[i].Limit, limit.ErrAmount)
	}
	for _, a := range amounts {
		i := slices.IndexFunc(takes, func(t workitem.Take) bool { return t.Limit == a.Limit })
		if i < 0 {
			return nil, fmt.Errorf("limit: %d of %q: the limiter does not take of it: name it in engine.Limits: %w", a.N, a.Limit, limit.ErrUnknownLimit)
		}
		takes[i].N = a.N
	}
	for _, t := range takes {
		if t.N < 0 {
			return nil, fmt.Errorf("limit: the amount of %s is %d: use 0 to leave it out, or more: %w", t.Limit, t.N, limit.ErrAmount)
		}
	}
	return slices.DeleteFunc(takes, func(t workitem.Take) bool { return t.N == 0 }), nil
}

// Acquire implements [limit.Limiter].
func (l *limiter) Acquire(ctx context.Context, amounts ...limit.Amount) (limit.Lease, error) {
	argument.Context(ctx, "Acquire of engine.Limits")
	takes, err := l.amounts(amounts)
	if err == nil {
		err = l.e.writer.NotNested(ctx)
	}
	if err != nil {
		return nil, err
	}
	lease, err := l.e.dispatch.Acquire(ctx, takes)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// TryAcquire implements [limit.Limiter].
func (l *limiter) TryAcquire(amounts ...limit.Amount) (limit.Lease, error) {
	takes, err := l.amounts(amounts)
	if err != nil {
		return nil, err
	}
	lease, err := l.e.dispatch.TryAcquire(takes)
	if lease == nil || err != nil {
		return nil, err
	}
	return lease, nil
}

// Wait implements [limit.Limiter].
func (l *limiter) Wait(amounts ...limit.Amount) (wait time.Duration) {
	reasons, err := l.Why(amounts...)
	if err != nil {
		return limit.Unknown
	}
	for _, r := range reasons {
		wait = max(wait, r.Wait)
	}
	return wait
}

// Why implements [limit.Limiter].
func (l *limiter) Why(amounts ...limit.Amount) (reasons []limit.Reason, err error) {
	takes, err := l.amounts(amounts)
	if err != nil {
		return nil, err
	}
	waits, err := l.e.dispatch.Reasons(takes)
	if err != nil {
		return nil, err
	}
	for _, w := range waits {
		r := w.Reason
		if r.Limit.InStore && r.Limit.N > 0 && w.Any == nil {
			if r.Wait, err = l.e.waitInStore(r, w.Key); err != nil {
				return nil, err
			}
		}
		if r.Wait > 0 {
			reasons = append(reasons, r)
		}
	}
	return reasons, nil
}

// waitInStore returns how long it takes until a shared limit has room by its row in the store. Where the store has no row of slots, as that of
// the only engine, it is what the engine knows.
func (e *Engine) waitInStore(r limit.Reason, key string) (wait time.Duration, err error) {
	if !e.isShared() && r.Limit.Algorithm == limit.Slots {
		return r.Wait, nil
	}
	err = e.View(e.ctx, func(reader store.Reader) error {
		view, err := reader.LimitRows(e.ctx, store.LimitFilter{Keys: []store.LimitKey{{Limit: r.Limit.Name, Key: key}}})
		if err != nil {
			return err
		}
		in := quota.Situation{Live: view.Live, Now: view.Now}
		if in.Now == 0 {
			in.Now = e.now().UnixNano()
		}
		var state []byte
		for _, row := range view.Rows {
			if row.Limit == r.Limit.Name && row.Key == key {
				state = row.State
			}
		}
		out, err := quota.Look(state, r.Limit, r.N, nil, in)
		wait = out.Wait
		return err
	})
	return wait, err
}

// keyless reports whether a limit has no keys. Which keys code outside of jobs uses is only known when it runs.
func (e *Engine) keyless(name string) bool {
	return e.definitions.Keyless(name) && !slices.ContainsFunc(e.cfg.Limits, func(l limit.Limit) bool { return l.Name == name })
}
