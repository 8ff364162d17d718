package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/retry"
)

// Config is what sets, keys and pools are made with, where the defaults do not do. The zero value has them.
type Config struct {
	// Clock measures and waits. Default: retry.SystemClock, whose monotonic reading counts.
	Clock retry.Clock
}

// Set is one or more limits that are acquired together, whole or not at all. Who waits is admitted in the order of
// asking: of two that want the same limit, the earlier one gets it first, however much it wants. A set is safe for
// concurrent use. Make it by [NewSet]: the methods of a nil Set, and of the zero value, return an error that is [ErrInvalid].
type Set struct {
	g    *group
	only []bool // by index of the group's limits: those that an acquisition takes; nil for all
}

// NewSet returns a set of limits, each with a name of its own. All that is wrong with them is one error, which is
// [ErrInvalid]. A set without limits admits everything.
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
			errs = append(errs, fmt.Errorf("%w %q: a set counts in its process, and has no store: leave Shared out, or let functions of an "+
				"engine take of it", ErrInvalid, l.Name))
		}
		if slices.ContainsFunc(limits[:i], func(other Limit) bool { return other.Name == l.Name }) {
			errs = append(errs, fmt.Errorf("%w %q: the set has two limits of that name: rename one", ErrInvalid, l.Name))
		}
	}
	return errors.Join(errs...)
}

// Only returns a view of the set that acquires only the limits with these names. Both share what is held, admitted and
// waited for. A name that the set does not have is an error that is [ErrUnknownLimit].
func (s *Set) Only(names ...string) (*Set, error) {
	if err := s.made(); err != nil {
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

// made refuses what NewSet did not make.
func (s *Set) made() error {
	if s == nil || s.g == nil {
		return fmt.Errorf("%w: the Set is nil, or its zero value: make it by limit.NewSet, and look at its error", ErrInvalid)
	}
	return nil
}

// Acquire implements [Limiter].
func (s *Set) Acquire(ctx context.Context, amounts ...Amount) (Lease, error) {
	if err := s.made(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ended(ctx, nil)
	}
	s.g.lock()
	return s.g.acquire(ctx, "", s.only, amounts)
}

// TryAcquire implements [Limiter].
func (s *Set) TryAcquire(amounts ...Amount) (Lease, error) {
	if err := s.made(); err != nil {
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
	if err := s.made(); err != nil {
		return nil, err
	}
	s.g.lock()
	defer s.g.unlock()
	return s.g.reasons(s.only, amounts)
}

// Change gives the limit of that name new numbers, while it is used: N, Per and the others may change, the algorithm may
// not. What is held and was admitted counts on; so after N is lowered, nothing is admitted until enough was released or
// has left the window. N of 0 pauses the limit: callers wait. A waiter that wants more than the limit now admits
// at once gets [ErrTooMuch]. The error is [ErrInvalid] or [ErrUnknownLimit], and then nothing has changed.
func (s *Set) Change(to Limit) error {
	if err := s.made(); err != nil {
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

// Usage is what a limit is used for now.
type Usage struct {
	Limit   Limit
	Used    int64 // slots that are held, what was admitted and still counts, probes without a result
	Waiting int   // acquisitions that wait for it, or for their turn
}

// Usage returns the limits of the set, in their order, with what they are used for; none if [NewSet] did not make it.
func (s *Set) Usage() []Usage {
	if s.made() != nil {
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
