package limit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limiter is the interface of a [Set], the limits of a key ([Keys.For]), a [Pool], and limits that are shared through
// a store.
type Limiter interface {
	// Acquire waits until all limits admit their amounts, and acquires them. Limits that no amount names get their
	// Each. It returns an error, and acquires nothing, if ctx ends first (the error wraps ctx.Err() and says what was
	// waited for), if an amount can never be admitted ([ErrTooMuch], at once), names no limit ([ErrUnknownLimit]), is
	// negative or is missing ([ErrAmount]).
	Acquire(ctx context.Context, amounts ...Amount) (Lease, error)

	// TryAcquire is like Acquire, but does not wait. It returns a nil lease and no error if a limit does not admit
	// its amount, or if others wait for one of the limits.
	TryAcquire(amounts ...Amount) (Lease, error)

	// Wait returns how long it takes until the amounts can be admitted, ignoring acquisitions that already wait: 0
	// if they can now, Unknown if something has to be released first, or if an amount is invalid.
	Wait(amounts ...Amount) time.Duration

	// Why returns the reasons why the amounts would have to wait now, ignoring acquisitions that already wait;
	// none if they can be admitted. The error is that of Acquire.
	Why(amounts ...Amount) ([]Reason, error)
}

// Lease is the result of an acquisition. Its methods are safe for concurrent use.
type Lease interface {
	// Commit reports how much of a rate was used in all, as soon as that is known, such as the tokens of an answer.
	// The unused part is refunded, if it still counts; usage beyond the acquired amount is a debt, which later
	// acquisitions wait for. It may be called again with a larger total. Without Commit the acquired amount counts as
	// used. The error is ErrUnknownLimit if the lease has nothing of the limit, ErrAmount if used is negative or the
	// limit is no rate, and ErrReleased after Release.
	Commit(limit string, used int64) error

	// Fail reports a failure to the circuit breakers of the set. Without it Release reports a success.
	Fail()

	// Release releases what is held. It never fails and may be called more than once, so it can be deferred.
	Release()

	// From returns the key of Keys, or the name of the Pool member, that the lease was acquired from; "" for
	// a set.
	From() string
}

// Amount is how much of a limit an acquisition takes. 0 takes nothing.
type Amount struct {
	Limit string // its name
	N     int64
}

// Take returns the amount n of the limit with that name.
func Take(limit string, n int64) Amount { return Amount{Limit: limit, N: n} }

// Do acquires the amounts, calls fn, and releases them, also if fn panics. It returns the result of fn unchanged. For
// circuit breakers, an error or a panic counts as a failure; context.Canceled does not, since it comes from the caller.
// Use Acquire if other errors are not failures either. If from or fn is nil, the error wraps [ErrInvalid].
//
// Within retry.Do each attempt acquires the amounts again, and nothing is held between attempts.
func Do[T any](
	ctx context.Context, from Limiter, fn func(context.Context, Lease) (T, error), amounts ...Amount,
) (value T, err error) {
	if from == nil || fn == nil {
		return value, fmt.Errorf("%w: Do needs limits and a function, and one of them is nil", ErrInvalid)
	}
	lease, err := from.Acquire(ctx, amounts...)
	if err != nil {
		return value, err
	}
	failed := true
	defer func() {
		if failed {
			lease.Fail()
		}
		lease.Release()
	}()
	value, err = fn(ctx, lease)
	failed = err != nil && !errors.Is(err, context.Canceled)
	return value, err
}

// held is one limit's part of a lease.
type held struct {
	Grant
	limit int // the index in the group
}

// lease is a Lease of a group. It is one allocation for up to two limits, since each acquisition makes one.
type lease struct {
	g        group
	from     string
	parts    []held
	few      [2]held // the memory of parts, where it is enough
	failed   bool
	released bool
}

// From implements Lease.
func (l *lease) From() string { return l.from }

// Fail implements Lease.
func (l *lease) Fail() {
	l.g.lock()
	l.failed = true
	l.g.unlock()
}

// Commit implements Lease.
func (l *lease) Commit(name string, used int64) error {
	l.g.lock()
	defer l.g.unlock()
	if l.released {
		return fmt.Errorf("limit: %d of %s came too late: commit before Release: %w", used, name, ErrReleased)
	}
	for i := range l.parts {
		part := &l.parts[i]
		def := &l.g.limits()[part.limit]
		if def.Name != name {
			continue
		}
		if used < 0 || def.Algorithm == Slots || def.Algorithm == CircuitBreaker {
			return fmt.Errorf("limit: %d of %s %s cannot be committed: commit what was used of a rate, 0 or more: %w",
				used, def.kind(), name, ErrAmount)
		}
		refund := used < part.N
		def.Commit(&l.g.states[part.limit], &part.Grant, l.g.now(), used)
		if refund {
			l.g.admit()
		}
		return nil
	}
	return fmt.Errorf("limit: the lease has nothing of %q: acquire some of it: %w", name, ErrUnknownLimit)
}

// Release implements Lease.
func (l *lease) Release() {
	l.g.lock()
	defer l.g.unlock()
	if l.released {
		return
	}
	l.released = true
	l.g.leases--
	given := false
	for _, part := range l.parts {
		def := &l.g.limits()[part.limit]
		switch def.Algorithm {
		case Slots:
			def.give(&l.g.states[part.limit], part.Grant, 0, l.failed)
			given = true
		case CircuitBreaker:
			def.give(&l.g.states[part.limit], part.Grant, l.g.now(), l.failed)
			given = true
		}
	}
	if given {
		l.g.admit()
	}
}
