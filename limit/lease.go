package limit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limiter admits work: a [Set], the limits of a key ([Keys.For]), a [Pool], or limits that are shared through a store.
type Limiter interface {
	// Acquire waits until all limits admit the amounts, and takes them. The amounts name limits; those that are not
	// named take their Each. It returns an error, and has taken nothing, if ctx ends before (the error is ctx.Err()
	// and says what was waited for), if an amount can never be admitted ([ErrTooMuch], at once), names no limit
	// ([ErrUnknownLimit]), is negative or is missing ([ErrAmount]).
	Acquire(ctx context.Context, amounts ...Amount) (Lease, error)

	// TryAcquire is Acquire that does not wait. It returns a nil lease and no error if something is not free, or if
	// others wait for one of the limits.
	TryAcquire(amounts ...Amount) (Lease, error)

	// Wait returns how long it takes until the amounts can be admitted, as far as time alone gives them and without
	// those that wait already: 0 if they can now, Unknown if something has to be released first, or if an amount is
	// wrong.
	Wait(amounts ...Amount) time.Duration

	// Why returns what the amounts would wait for now, without those that wait already; nothing if they can be
	// admitted. The error is that of Acquire.
	Why(amounts ...Amount) ([]Reason, error)
}

// Lease is what was acquired. Its methods are safe for concurrent use.
type Lease interface {
	// Commit says how much of a rate was used in all, as soon as that is known: the tokens of an answer. What was not
	// used is given back, as far as time has not worked it off; what was used beyond is a debt, which later
	// acquisitions wait for. It may be called again with a larger amount in all. Without Commit what was acquired
	// counts. The error is ErrUnknownLimit if the lease has nothing of the limit, ErrAmount if used is negative or
	// the limit is no rate, and ErrReleased after Release.
	Commit(limit string, used int64) error

	// Fail says that what was done has failed, for the breakers of the set. Without it Release reports a success.
	Fail()

	// Release gives back what is held. It never fails and may be called more than once, so it can be deferred.
	Release()

	// From returns what was acquired from: the key of Keys, the name of the member of a Pool; "" of a set.
	From() string
}

// Amount is how much of a limit an acquisition takes. 0 leaves the limit out.
type Amount struct {
	Limit string // its name
	N     int64
}

// Take returns the amount n of the limit with that name.
func Take(limit string, n int64) Amount { return Amount{Limit: limit, N: n} }

// Do acquires, calls fn, and releases also if fn panics. The result of fn is returned unchanged. For the breakers of the
// limiter an error or a panic is a failure; context.Canceled is not, since it comes from the caller. Use Acquire where
// other errors are no failures either.
//
// Within retry.Do each attempt acquires for itself, and nothing is held between attempts.
func Do[T any](
	ctx context.Context, from Limiter, fn func(context.Context, Lease) (T, error), amounts ...Amount,
) (value T, err error) {
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

// lease is a Lease of a group. It is small, since each acquisition makes one.
type lease struct {
	g        *group
	from     string
	first    held
	more     *[]held // where there are several
	some     bool    // first is set
	failed   bool
	released bool
}

// add adds a part.
func (l *lease) add(part held) {
	if !l.some {
		l.first, l.some = part, true
		return
	}
	*l.more = append(*l.more, part)
}

// parts iterates over the parts of the lease.
func (l *lease) parts(yield func(*held) bool) {
	if !l.some || !yield(&l.first) || l.more == nil {
		return
	}
	for i := range *l.more {
		if !yield(&(*l.more)[i]) {
			return
		}
	}
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
	for part := range l.parts {
		def := l.g.limits()[part.limit]
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
	for part := range l.parts {
		def := &l.g.limits()[part.limit]
		switch def.Algorithm {
		case Slots:
			def.Give(&l.g.states[part.limit], part.Grant, 0, l.failed)
			given = true
		case CircuitBreaker:
			def.Give(&l.g.states[part.limit], part.Grant, l.g.now(), l.failed)
			given = true
		}
	}
	if given {
		l.g.admit()
	}
}
