package sqlite

import (
	"context"
	"errors"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

// maxReaders is how many views of a file run at the same time. Readers do not block the writer, but use CPU time.
const maxReaders = 4

// View implements [store.Store].
func (s *Store) View(ctx context.Context, f func(store.Reader) error) error {
	if err := ctx.Err(); err != nil { // a free connection is returned even if the context has ended
		return err
	}
	if s.memory != nil {
		return s.viewAlone(ctx, f)
	}
	if err := s.stillThere(); err != nil { // a new connection would open the file that has the name now
		return err
	}
	c, err := s.currentReader(ctx)
	if err != nil {
		return explain(s.path, err)
	}
	defer s.readers.Put(c, c.frozen == nil) // nothing was written through it
	if err := s.snapshot(c); err != nil {
		return err
	}
	err = s.read(ctx, &reader{c: c, nets: s.nets, ways: &s.ways}, f)
	return errors.Join(err, s.stillFrozen(c))
}

// snapshot begins a read transaction that sees everything that was acknowledged. The writer waits meanwhile, so that
// its tables and its journal agree.
//
//	the writer                      this reader
//	lock of the store
//	flush: tables at 137
//	                                BEGIN; the first read: its snapshot
//	the lock is free
//	commit 138                      sees 137, in tables and journal, to its end
//
// BEGIN alone takes no snapshot, hence the read under the lock. Without the lock, commit 138 could come between the
// flush and the read, and its entry would be visible without its rows.
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
	projected, _, err := c.number(projectedSeq) // the first read takes the snapshot
	// A reader in another process cannot make the owner write its window, so it adds what the tables lack.
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
		// The connection returns to the pool, and the context of this caller may end while another one uses it.
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
	return s.read(context.WithoutCancel(ctx), &reader{c: s.w, nets: s.nets, ways: &s.ways, shared: true}, f)
}

// newReaders returns a pool of read-only connections.
func newReaders(open func(context.Context) (*conn, error)) *sqlkit.Pool[*conn] {
	return sqlkit.NewPool(maxReaders, open, (*conn).close, errClosed)
}
