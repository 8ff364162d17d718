package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/internal/argument"
	"github.com/tasq-dev/tasq/retry"
)

// Config configures sets, keys and pools. The zero value has the defaults.
type Config struct {
	// Clock measures and waits. Default: retry.SystemClock, whose monotonic reading counts.
	Clock retry.Clock
}

// Set is one or more limits that are acquired together, all or none. Waiting acquisitions are admitted in FIFO order:
// of two that need the same limit, the earlier one gets it first, whatever their amounts. A set is safe for concurrent
// use. Make it with [NewSet]: the methods of a nil Set, and of the zero value, return an error that wraps ErrInvalid.
type Set struct {
	g    group
	only []bool // by index of the group's limits: those that an acquisition takes; nil for all
}

// NewSet returns a set of limits with different names. All that is wrong with them is one error, which wraps
// ErrInvalid. A set without limits admits everything.
func NewSet(limits ...Limit) (*Set, error) { return Config{}.NewSet(limits...) }

// NewSet is like the function NewSet, with a configuration.
func (c Config) NewSet(limits ...Limit) (*Set, error) {
	if err := validate(limits); err != nil {
		return nil, err
	}
	in := &scope{shared: &shared{defs: slices.Clone(limits), time: newTimes(c.Clock)}}
	return &Set{g: newGroup(in)}, nil
}

// validate finds all that is wrong with the limits of a set.
func validate(limits []Limit) error {
	var errs []error
	for i, l := range limits {
		if err := l.Validate(); err != nil {
			errs = append(errs, err)
		}
		if l.InStore {
			errs = append(errs, fmt.Errorf("%w %q: a set counts in its process, and has no store: leave Shared out, or take of an engine's limits, "+
				"in its functions or with engine.Limits", ErrInvalid, l.Name))
		}
		if slices.ContainsFunc(limits[:i], func(other Limit) bool { return other.Name == l.Name }) {
			errs = append(errs, fmt.Errorf("%w %q: the set has two limits of that name: rename one", ErrInvalid, l.Name))
		}
	}
	return errors.Join(errs...)
}

// Only returns a view of the set that acquires only the limits with these names. Both share their state and their
// queue of waiting acquisitions. A name that the set does not have is an error that wraps ErrUnknownLimit.
func (s *Set) Only(names ...string) (*Set, error) {
	if err := s.checkMade(); err != nil {
		return nil, err
	}
	s.g.lock()
	defer s.g.unlock()
	view := &Set{g: s.g, only: make([]bool, len(s.g.states))}
	for _, name := range names {
		i, err := s.g.find(name)
		if err != nil {
			return nil, err
		}
		view.only[i] = true
	}
	return view, nil
}

// checkMade refuses what NewSet did not make.
func (s *Set) checkMade() error {
	if s == nil || s.g.in == nil {
		return fmt.Errorf("%w: the Set is nil, or its zero value: make it by limit.NewSet, and look at its error", ErrInvalid)
	}
	return nil
}

// Acquire implements [Limiter].
func (s *Set) Acquire(ctx context.Context, amounts ...Amount) (Lease, error) {
	argument.Context(ctx, "limit.Set.Acquire")
	if err := s.checkMade(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, Stopped(ctx, nil)
	}
	s.g.lock()
	return s.g.acquire(ctx, "", s.only, amounts)
}

// TryAcquire implements [Limiter].
func (s *Set) TryAcquire(amounts ...Amount) (Lease, error) {
	if err := s.checkMade(); err != nil {
		return nil, err
	}
	s.g.lock()
	defer s.g.unlock()
	return s.g.tryAcquire("", s.only, amounts)
}

// Wait implements [Limiter].
func (s *Set) Wait(amounts ...Amount) time.Duration { return longest(s.Why(amounts...)) }

// longest is how long it takes until there is no reason to wait.
func longest(reasons []Reason, err error) (wait time.Duration) {
	if err != nil {
		return Unknown
	}
	for _, r := range reasons {
		wait = max(wait, r.Wait)
	}
	return wait
}

// Why implements [Limiter].
func (s *Set) Why(amounts ...Amount) ([]Reason, error) {
	if err := s.checkMade(); err != nil {
		return nil, err
	}
	s.g.lock()
	defer s.g.unlock()
	return s.g.reasons(s.only, amounts)
}

// Change changes the numbers of the limit with that name while it is in use: all fields but the algorithm may change.
// What is held or was admitted still counts, so after N is lowered, nothing is admitted until enough was released or
// has left the window. N of 0 pauses the limit: callers wait. A waiting acquisition of more than the new Capacity gets
// ErrTooMuch. If the error is ErrInvalid or ErrUnknownLimit, nothing has changed.
func (s *Set) Change(to Limit) error {
	if err := s.checkMade(); err != nil {
		return err
	}
	s.g.lock()
	defer s.g.unlock()
	if err := s.g.in.change(to); err != nil {
		return err
	}
	s.g.admit()
	return nil
}

// Usage is the current usage of a limit.
type Usage struct {
	Limit   Limit
	Used    int64 // slots that are held, the admitted amount that still counts, or probes without a result
	Waiting int   // acquisitions that wait for it, or for earlier ones
}

// Usage returns the current usage of each limit of the set, in order; none for the zero Set.
func (s *Set) Usage() []Usage {
	if s.checkMade() != nil {
		return nil
	}
	s.g.lock()
	defer s.g.unlock()
	var all []Usage
	for i, l := range s.g.limits() {
		if s.only != nil && !s.only[i] {
			continue
		}
		u := Usage{Limit: l, Used: l.Used(&s.g.states[i], s.g.now())}
		if waiting := s.g.waiting(); waiting != nil {
			u.Waiting = waiting[i].n
		}
		all = append(all, u)
	}
	return all
}
