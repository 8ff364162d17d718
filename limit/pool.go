package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/internal/argument"
)

// Pool is a group of interchangeable sets of limits, such as one for each of three API keys. An acquisition uses the set
// that admits it first; Lease.From returns its name. If several sets could admit it at once, they are used in turn. A
// pool is safe for concurrent use, and so are its members, also directly.
type Pool struct {
	members []Member
	turn    atomic.Uint32
	mu      sync.Mutex // held while a waiter is put into all queues, so that their order is the same everywhere
}

// Member is a set of a pool.
type Member struct {
	Name string
	Set  *Set
}

// NewPool returns a pool of one or more members with different names. The error wraps ErrInvalid.
func NewPool(members ...Member) (*Pool, error) {
	if len(members) == 0 {
		return nil, fmt.Errorf("%w: a pool without members admits nothing: add one", ErrInvalid)
	}
	seen := make(map[string]bool)
	for _, m := range members {
		switch {
		case m.Set.checkMade() != nil:
			return nil, fmt.Errorf("%w: member %q of the pool has no set", ErrInvalid, m.Name)
		case seen[m.Name]:
			return nil, fmt.Errorf("%w: the pool has two members called %q: rename one", ErrInvalid, m.Name)
		}
		seen[m.Name] = true
	}
	return &Pool{members: members}, nil
}

// checkMade refuses what NewPool did not make.
func (p *Pool) checkMade() error {
	if p == nil || len(p.members) == 0 {
		return fmt.Errorf("%w: the Pool is nil, or its zero value: make it by limit.NewPool, and look at its error", ErrInvalid)
	}
	return nil
}

// TryAcquire implements Limiter. Members that can never admit the amounts are skipped; if none can, the error joins
// those of all.
func (p *Pool) TryAcquire(amounts ...Amount) (Lease, error) {
	if err := p.checkMade(); err != nil {
		return nil, err
	}
	first := int(p.turn.Add(1))
	var errs []error
	for i := range p.members {
		m := p.members[(first+i)%len(p.members)]
		l, err := m.tryAcquire(amounts)
		if l != nil {
			return l, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("member %s: %w", m.Name, err))
		}
	}
	if len(errs) == len(p.members) {
		return nil, errors.Join(errs...)
	}
	return nil, nil
}

func (m Member) tryAcquire(amounts []Amount) (Lease, error) {
	m.Set.g.lock()
	defer m.Set.g.unlock()
	return m.Set.g.tryAcquire(m.Name, m.Set.only, amounts)
}

// Acquire implements [Limiter], as TryAcquire does.
func (p *Pool) Acquire(ctx context.Context, amounts ...Amount) (Lease, error) {
	argument.Context(ctx, "limit.Pool.Acquire")
	if ctx.Err() != nil {
		return nil, Stopped(ctx, nil)
	}
	if l, err := p.TryAcquire(amounts...); l != nil || err != nil {
		return l, err
	}
	w := newWaiter(len(p.members))
	return w.wait(ctx, p.enqueue(w, amounts)...)
}

// enqueue lets a waiter wait in all members.
func (p *Pool) enqueue(w *waiter, amounts []Amount) (places []*place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		g := m.Set.g
		g.lock()
		if want, err := g.want(m.Set.only, amounts); err != nil {
			w.drop(err)
		} else {
			places = append(places, g.enqueue(w, m.Name, want))
		}
		g.unlock()
	}
	return places
}

// Wait implements [Limiter]: it returns the shortest of the members' waits.
func (p *Pool) Wait(amounts ...Amount) time.Duration { return longest(p.Why(amounts...)) }

// Why implements [Limiter]: it returns the reasons of the member that admits first.
func (p *Pool) Why(amounts ...Amount) (shortest []Reason, err error) {
	if err := p.checkMade(); err != nil {
		return nil, err
	}
	var errs []error
	for i, m := range p.members {
		reasons, err := m.Set.Why(amounts...)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("member %s: %w", m.Name, err))
		case i == len(errs) || longest(reasons, nil) < longest(shortest, nil):
			shortest = reasons
		}
	}
	if len(errs) == len(p.members) {
		return nil, errors.Join(errs...)
	}
	return shortest, nil
}
