package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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
	c, err := s.readers.get(ctx)
	if err != nil {
		return explain(s.path, err)
	}
	defer s.readers.put(c)
	if err := s.snapshot(c); err != nil {
		return err
	}
	return s.read(ctx, &reader{c: c, nets: s.nets}, f)
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
	if p.done {
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

// openReader makes a store that never writes. What an owner has committed and not yet written into the tables is laid
// over them in temporary tables of the reader's own, which views of the same names join: so every query, the user's
// among them, is exact and need not know.
func (s *Store) openReader(ctx context.Context) (store.Store, error) {
	if _, err := os.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: %w", s.path, store.ErrNotFound, err)
	}
	s.readOnly = true
	s.readers = newPool(func() (*conn, error) {
		c, err := connect(context.Background(), dsn(s.path, "ro"), "busy_timeout=10000", "cache_size=-16384",
			"temp_store=MEMORY")
		if err != nil {
			return nil, err
		}
		if err := s.checkSchema(c); err != nil {
			return nil, errors.Join(err, c.close())
		}
		return c, nil
	})
	c, err := s.readers.get(ctx)
	if err != nil {
		return nil, explain(s.path, err)
	}
	s.readers.put(c)
	return s, nil
}

// checkSchema makes sure that this program can read the file as it is.
func (s *Store) checkSchema(c *conn) error {
	application, _, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	if application != applicationID {
		return notOurs(s.path)
	}
	known, err := migrations()
	if err != nil {
		return err
	}
	pending, err := pendingMigrations(c, known)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if len(pending) > 0 {
		return fmt.Errorf("%s: %w: its schema is older than this program; open it once for writing, which migrates it",
			s.path, store.ErrReadOnly)
	}
	return nil
}

const overlayPrefix = "newer_"

// makeOverlay makes the temporary tables and views of a reader. They hide the tables of the same names. A query through
// them is much slower, since SQLite cannot use every index of the tables below, so they are there only while they hold
// something.
func makeOverlay(c *conn) error {
	for _, t := range []table{casesTable, itemsTable, jobsTable} {
		columns := t.list("")
		over := "temp." + overlayPrefix + t.name
		err := c.exec(fmt.Sprintf("CREATE TABLE %s (%s, PRIMARY KEY (id)) WITHOUT ROWID;"+
			"CREATE TEMP VIEW %s AS SELECT %s FROM %s "+
			"UNION ALL SELECT %s FROM main.%s WHERE id NOT IN (SELECT id FROM %s)",
			over, columns, t.name, columns, over, columns, t.name, over))
		if err != nil {
			return err
		}
	}
	// Counts are added up: those of the tables, and how they have changed since.
	over := "temp." + overlayPrefix + "counts"
	err := c.exec("CREATE TABLE " +
		over + " (what, workflow, task, state, n, PRIMARY KEY (what, workflow, task, state));" +
		"CREATE TEMP VIEW counts AS SELECT what, workflow, task, state, sum(n) AS n FROM (SELECT * FROM main.counts " +
		"UNION ALL SELECT * FROM " + over + ") GROUP BY what, workflow, task, state")
	if err != nil {
		return err
	}
	var views []string
	err = c.each("SELECT sql FROM main.sqlite_schema WHERE type = 'view'", nil, func(r *row) error {
		views = append(views, r.text())
		return r.err
	})
	if err != nil {
		return err
	}
	for _, v := range views {
		if err := c.exec(strings.Replace(v, "CREATE VIEW", "CREATE TEMP VIEW", 1)); err != nil {
			return err
		}
	}
	return nil
}

// overlay lays over the tables what the journal has beyond them. The end of the transaction takes it away.
func (s *Store) overlay(c *conn, projected int64) error {
	w := newWindow()
	last, err := replay(c, s.nets, &w, projected, int(^uint32(0)>>1))
	if err != nil || last == projected {
		return err
	}
	if err := makeOverlay(c); err != nil {
		return err
	}
	return w.write(newRowWriter(c, "temp."+overlayPrefix))
}
