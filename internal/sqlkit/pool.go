package sqlkit

import (
	"context"
	"errors"
	"sync"
)

// Pool is a pool of connections, each of which has one user at a time. They are opened on demand.
type Pool[C any] struct {
	open  func(context.Context) (C, error)
	end   func(C) error
	over  error // what Get returns after Close
	slots chan struct{}
	mu    sync.Mutex
	idle  []C
	done  bool
}

// NewPool returns a pool of at most max connections. After Close, Get returns the error over.
func NewPool[C any](max int, open func(context.Context) (C, error), end func(C) error, over error) *Pool[C] {
	return &Pool[C]{open: open, end: end, over: over, slots: make(chan struct{}, max)}
}

// Get waits for a free connection.
func (p *Pool[C]) Get(ctx context.Context) (C, error) {
	var none C
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	p.mu.Lock()
	if p.done {
		p.mu.Unlock()
		<-p.slots
		return none, p.over
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.open(ctx)
	if err != nil {
		<-p.slots
	}
	return c, err
}

// Put returns a connection to the pool, or closes it if keep is false.
func (p *Pool[C]) Put(c C, keep bool) {
	p.mu.Lock()
	if p.done || !keep {
		_ = p.end(c) // no caller waits for the error
	} else {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	<-p.slots
}

// Close closes the idle connections; a connection in use is closed when it is returned.
func (p *Pool[C]) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, p.end(c))
	}
	p.idle = nil
	return errors.Join(errs...)
}
