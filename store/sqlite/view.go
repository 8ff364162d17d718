package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/tasq-dev/tasq/store"
)

// maxReaders is how many views of a file run at once. Readers do not block the writer, but they take its processor.
const maxReaders = 4

// View implements [store.Store].
func (s *Store) View(ctx context.Context, f func(store.Reader) error) error {
	if s.memory != nil {
		return s.viewAlone(ctx, f)
	}
	if err := s.stillThere(); err != nil { // a new connection would open what lies there now
		return err
	}
	c, err := s.readers.get(ctx)
	if err != nil {
		return explain(s.path, err)
	}
	defer s.readers.put(c)
	if err := s.snapshot(c); err != nil {
		return err
	}
	err = s.read(ctx, &reader{c: c, nets: s.nets}, f)
	return errors.Join(err, s.stillFrozen(c))
}

// snapshot begins a read transaction that sees all that was acknowledged. The writer stands still meanwhile, so that
// the tables and the journal that it sees agree.
func (s *Store) snapshot(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.w != nil {
		if err := s.flush(); err != nil {
			return err
		}
	}
	c.overlaid = false
	if err := c.run("BEGIN"); err != nil {
		return explain(s.path, err)
	}
	projected, _, err := c.number(projectedSeq) // the first read fixes what the transaction sees
	if err == nil && s.w == nil {
		err = s.overlay(c, projected)
	}
	if err != nil {
		_ = c.exec("ROLLBACK") // the first error is the one to report
	}
	return explain(s.path, err)
}

// read runs f and ends the read transaction, also when f panics.
func (s *Store) read(ctx context.Context, r *reader, f func(store.Reader) error) (err error) {
	r.c.ctx = ctx
	defer func() {
		r.end()
		r.c.ctx = context.Background()
		if e := r.c.exec("ROLLBACK"); e != nil && err == nil {
			err = explain(s.path, e)
		}
	}()
	return explain(s.path, f(r))
}

// viewAlone is View for a database in memory, which has one connection.
func (s *Store) viewAlone(ctx context.Context, f func(store.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.w.run("BEGIN"); err != nil {
		return explain(s.path, err)
	}
	return s.read(context.WithoutCancel(ctx), &reader{c: s.w, nets: s.nets, shared: true}, f)
}

// pool holds the connections of a file's readers.
type pool struct {
	open  func() (*conn, error)
	slots chan struct{}
	mu    sync.Mutex
	idle  []*conn
	done  bool
}

func newPool(open func() (*conn, error)) *pool {
	return &pool{open: open, slots: make(chan struct{}, maxReaders)}
}

// get waits for a free connection.
func (p *pool) get(ctx context.Context) (*conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	if p.done {
		p.mu.Unlock()
		<-p.slots
		return nil, errClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.open()
	if err != nil {
		<-p.slots
	}
	return c, err
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	if p.done || c.frozen != nil {
		_ = c.close() // nothing was written through it
	} else {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	<-p.slots
}

// close closes the idle connections; one that is in use is closed when it is given back.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.close())
	}
	p.idle = nil
	return errors.Join(errs...)
}
