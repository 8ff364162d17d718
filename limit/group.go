package limit

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/retry"
)

// times converts a clock to nanoseconds since its creation.
type times struct {
	clock retry.Clock
	start time.Time
}

func newTimes(c retry.Clock) times {
	if c == nil {
		c = retry.SystemClock
	}
	return times{clock: c, start: c.Now()}
}

// epoch keeps times positive if the clock is set back to before the start.
const epoch = 1 << 60

func (t times) now() int64 {
	if t.clock == retry.SystemClock { // time.Since reads the monotonic clock alone, which takes half as long
		return epoch + int64(time.Since(t.start))
	}
	return epoch + int64(t.clock.Now().Sub(t.start))
}

// shared is the common part of the groups of one Set or Keys. The locks of all groups together guard the definitions.
type shared struct {
	defs []Limit
	time times
}

// change replaces a definition.
func (o *shared) change(to Limit) error {
	for i, l := range o.defs {
		if l.Name != to.Name {
			continue
		}
		if err := to.Validate(); err != nil {
			return err
		}
		if l.Algorithm != to.Algorithm {
			return fmt.Errorf("%w %q: its algorithm is %v and cannot become %v while it is used: keep it, or make a new set",
				ErrInvalid, l.Name, l.Algorithm, to.Algorithm)
		}
		o.defs[i] = to
		return nil
	}
	return unknown(o.defs, to.Name)
}

// scope is the lock of one or more groups, and their common data.
type scope struct {
	*shared
	mu     sync.Mutex
	queues map[*counts][]queue // waiting acquisitions of the groups that have some, by index of the definitions
}

// group is a set of limits that are acquired together: a Set, or the limits of one key. The lock of its scope guards it.
type group struct {
	in *scope
	*counts
}

// counts is what a group keeps. It is small, since there may be one for each of many keys.
type counts struct {
	states []State // by index of the definitions
	leases int     // those that are not released
}

func newGroup(in *scope) group { return group{in, &counts{states: make([]State, len(in.defs))}} }

func (g group) lock()           { g.in.mu.Lock() }
func (g group) unlock()         { g.in.mu.Unlock() }
func (g group) limits() []Limit { return g.in.defs }
func (g group) now() int64      { return g.in.time.now() }

// waiting returns the queues, none if nothing waits.
func (g group) waiting() []queue { return g.in.queues[g.counts] }

// find returns the index of a limit.
func (g group) find(name string) (int, error) {
	for i := range g.in.defs {
		if g.in.defs[i].Name == name {
			return i, nil
		}
	}
	return 0, unknown(g.in.defs, name)
}

// unknown is the error for a name that none of the limits has.
func unknown(defs []Limit, name string) error {
	names := make([]string, len(defs))
	for i, l := range defs {
		names[i] = l.Name
	}
	if near := spelling.Closest(name, names); near != "" {
		return fmt.Errorf("limit: the set has no limit %q: did you mean %q?: %w", name, near, ErrUnknownLimit)
	}
	return fmt.Errorf("limit: the set has no limit %q, it has %q: %w", name, names, ErrUnknownLimit)
}

// demand is the amount of each limit that an acquisition needs, by index; 0 for none.
type demand struct {
	few  [4]int64
	many []int64 // instead of few, where there are more limits
}

func (d *demand) of(i int) *int64 {
	if d.many != nil {
		return &d.many[i]
	}
	return &d.few[i]
}

// want checks the amounts of an acquisition. only are the limits that it uses, nil for all.
func (g group) want(only []bool, amounts []Amount) (d demand, err error) {
	defs := g.in.defs
	if len(defs) > len(d.few) {
		d.many = make([]int64, len(defs))
	}
	for i := range defs {
		if only != nil && !only[i] {
			continue
		}
		*d.of(i) = defs[i].Each
		if defs[i].Each == 0 && !slices.ContainsFunc(amounts, func(a Amount) bool { return a.Limit == defs[i].Name }) {
			return d, fmt.Errorf("limit: the amount of %s is missing: acquire with Take(%q, n), or set its Each: %w",
				defs[i].Name, defs[i].Name, ErrAmount)
		}
	}
	for _, a := range amounts {
		i, err := g.find(a.Limit)
		if err == nil && only != nil && !only[i] {
			err = fmt.Errorf("limit: %q is not in this view of the set: name it in Only: %w", a.Limit, ErrUnknownLimit)
		}
		if err == nil {
			err = defs[i].check(a.N)
		}
		if err != nil {
			return d, err
		}
		*d.of(i) = a.N
	}
	return d, nil
}

// check returns an error for amounts that can never be admitted.
func (l *Limit) check(n int64) error {
	if n < 0 {
		return fmt.Errorf("limit: the amount of %s is %d: use 0 to leave it out, or more: %w", l.Name, n, ErrAmount)
	}
	if n > l.Capacity() && l.N > 0 {
		return fmt.Errorf("limit: %d of %s %s were asked for, and it admits %d at once: ask for less, or raise it: %w",
			n, l.kind(), l.Name, l.Capacity(), ErrTooMuch)
	}
	return nil
}

// try acquires the demand, if all of it is available and no one waits for any of its limits; otherwise it
// returns nil.
func (g group) try(from string, want *demand) *lease {
	for i, q := range g.waiting() {
		if q.n > 0 && *want.of(i) > 0 {
			return nil
		}
	}
	now, parts := int64(0), 0
	for i := range g.in.defs {
		n := *want.of(i)
		if n == 0 {
			continue
		}
		l := &g.in.defs[i]
		if now == 0 && l.Algorithm != Slots {
			now = g.now()
		}
		if l.wait(&g.states[i], now, n) != 0 {
			return nil
		}
		parts++
	}
	return g.take(from, want, now, parts)
}

// take acquires the demand. The caller has checked that all of it is available.
func (g group) take(from string, want *demand, now int64, parts int) *lease {
	granted := &lease{g: g, from: from}
	granted.parts = granted.few[:0]
	if parts > len(granted.few) {
		granted.parts = make([]held, 0, parts)
	}
	g.leases++
	for i := range g.in.defs {
		if n := *want.of(i); n > 0 {
			granted.parts = append(granted.parts, held{g.in.defs[i].take(&g.states[i], now, n), i})
		}
	}
	return granted
}

// reasons checks amounts and returns the reasons of why.
func (g group) reasons(only []bool, amounts []Amount) ([]Reason, error) {
	want, err := g.want(only, amounts)
	if err != nil {
		return nil, err
	}
	return g.why(&want), nil
}

// why lists the limits that do not have room for the demand.
func (g group) why(want *demand) (reasons []Reason) {
	now := g.now()
	for i, l := range g.in.defs {
		n := *want.of(i)
		if wait := l.wait(&g.states[i], now, n); wait > 0 {
			reasons = append(reasons, Reason{Limit: l, N: n, Wait: wait})
		}
	}
	return reasons
}
