package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// format is that of the entries that this program writes.
const format = 1

// maxReaders is how many views run at once, each on a connection.
const maxReaders = 4

// Store is a database of cases. Get one from the Opener that [Open] returns.
type Store struct {
	db       database
	now      func() time.Time
	log      *slog.Logger
	nets     *tables.Nets
	readers  *sqlkit.Pool[*conn]
	readOnly bool
	shared   bool // several engines may have the database open

	ending context.Context // is over when the store begins to close
	end    context.CancelFunc

	mu       sync.Mutex // guards the writer and all below
	w        *conn      // nil for a reader, and while there is no connection
	presence *presence  // nil for a reader
	token    int64      // names the locks by which others see that this engine is there, and where it commits
	self     int64      // number of this engine in the table processes
	epoch    int64      // counts its connections; with the number, it is what commits are fenced with
	pid      uint32     // of the server's process for the writer
	base     int64      // of positions; see position.go
	ahead    ahead      // the transaction of the next update
	deltas   int        // commits since the counts were folded
	rejoined bool       // this engine holds none of its jobs any more, and does not know that yet
	doubt    bool       // of a commit it could not be found out whether it happened
	closed   bool
	lost     error // why the database is not this store's any more

	last lastEntry // the entry that this engine appended last; zero if there is none

	prints atomic.Pointer[[]string] // the fingerprints of this engine's definitions
	number atomic.Int64             // self, for the goroutine that listens
	others atomic.Int64             // how many other engines there were at the last Tick
	hints  *hints
	sideMu sync.Mutex // guards the side; taken after mu
	side   side

	appended tables.Appended // memory for the next update
	buf      []byte
}

// Update implements [store.Store].
func (s *Store) Update(ctx context.Context, f func(store.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	tx := &transaction{s: s, w: s.w, appended: s.appended[:0], buf: s.buf[:0]}
	committed := false
	defer func() { // also when f panics
		tx.end()
		s.keepBuffers(tx)
		if !committed {
			tx.rollback()
			s.checkAhead()
		}
	}()
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.commit(); err != nil {
		return s.lose(s.db.explain(err))
	}
	committed = true
	s.hints.committed(tx)
	return nil
}

// keepBuffers lets the next update use the memory of this one, unless a single large command made it grow.
func (s *Store) keepBuffers(tx *transaction) {
	clear(tx.appended)
	s.appended, s.buf = tx.appended[:0], tx.buf[:0]
	if cap(s.appended) > 4096 || cap(s.buf) > 1<<20 {
		s.appended, s.buf = nil, nil
	}
}

// ready reports why the store cannot be written, if so. A connection that was lost is made anew.
func (s *Store) ready(ctx context.Context) error {
	switch {
	case s.closed:
		return errClosed
	case s.readOnly:
		return s.db.at("%w: it was opened so", store.ErrReadOnly)
	case s.lost != nil:
		return s.lost
	}
	if err := s.presence.check(); err != nil {
		return s.lose(err)
	}
	if s.w != nil && !s.w.gone() {
		return nil
	}
	return s.lose(s.db.explain(s.rejoin(ctx)))
}

// lose remembers that the database is another engine's.
func (s *Store) lose(err error) error {
	if errors.Is(err, store.ErrLost) && s.lost == nil {
		s.lost = err
		s.log.Error("the database is lost to this engine, and nothing is acknowledged any more", "error", err)
	}
	return err
}

// View implements [store.Store].
func (s *Store) View(ctx context.Context, f func(store.Reader) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := s.readers.Get(ctx)
	if err != nil {
		return s.db.explain(err)
	}
	defer func() { s.readers.Put(c, !c.gone()) }()
	if err := s.stillThere(); err != nil {
		return err
	}
	if c, err = s.snapshot(ctx, c); err != nil {
		return s.db.explain(err)
	}
	c.ctx = ctx
	r := &reader{c: c, nets: s.nets}
	defer func() { // also when f panics
		r.end()
		c.ctx = context.Background()
		if e := c.exec(context.Background(), "ROLLBACK"); e != nil && err == nil {
			err = s.db.explain(e)
		}
	}()
	return s.db.explain(f(r))
}

const beginView = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// snapshot begins the transaction of a view. A connection that was idle may have been lost meanwhile, and is made anew.
func (s *Store) snapshot(ctx context.Context, c *conn) (*conn, error) {
	_, err := c.begin(ctx, beginView)
	if err == nil || !c.gone() || ctx.Err() != nil {
		return c, err
	}
	fresh, err := s.db.connect(ctx, readerNeeds...)
	if err != nil {
		return c, err
	}
	c.raw, c.pg, c.pid = fresh.raw, fresh.pg, fresh.pid
	_, err = c.begin(ctx, beginView)
	return c, err
}

// stillThere reports why nothing is to be read, if so.
func (s *Store) stillThere() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.presence != nil && s.lost == nil {
		return s.lose(s.presence.check())
	}
	return s.lost
}

// foldAfter is after how many commits Idle folds the counts.
const foldAfter = 1000

// Idle implements [store.Store].
func (s *Store) Idle(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.w == nil || s.w.gone() || s.deltas < foldAfter {
		return nil
	}
	s.deltas = 0
	s.dropAhead()
	err := s.fold("counts", "count_deltas", "what, workflow, task, state")
	if err == nil {
		err = s.fold("ended", "ended_deltas", "hour, workflow, task, state, took")
	}
	if err == nil { // what is left with nothing is of removed cases
		_, err = s.w.run(folding+" DELETE FROM @.ended WHERE n = 0 AND (SELECT got FROM mine)", "counts")
	}
	return s.db.explain(err)
}

// folding begins the statements of those who fold counts. One engine at a time does, the others leave it to that one: two that lock the
// rows in orders of their own would wait for each other.
const folding = "WITH mine AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(" + lockKey + ") AS got)"

// fold adds the rows of a table of changes to the counts, by the columns of their key.
func (s *Store) fold(counts, deltas, key string) error {
	_, err := s.w.run(folding+", d AS (DELETE FROM @."+deltas+" WHERE (SELECT got FROM mine) RETURNING *) "+
		"INSERT INTO @."+counts+" AS c ("+key+", n) SELECT "+key+", sum(n) FROM d GROUP BY "+key+" HAVING sum(n) <> 0 "+
		"ON CONFLICT ("+key+") DO UPDATE SET n = c.n + excluded.n", "counts")
	return err
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.dropAhead()
	if s.w != nil && !s.w.gone() && s.self != 0 {
		if err := s.leave(context.Background()); err != nil {
			s.log.Warn("the row of this engine could not be deleted; the next one that opens the database does it", "error", err)
		}
	}
	return s.shut((*conn).close)
}

// Kill implements [store.Killer].
func (s *Store) Kill() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.takeAhead()
	pids := s.pids()
	err := s.shut((*conn).cut)
	return errors.Join(err, s.awaitEnd(pids))
}

// pids are those of the server's processes for the connections that this engine is known by; none through a pooler, which keeps them.
func (s *Store) pids() []int32 {
	if s.db.set.poll > 0 || s.presence == nil {
		return nil
	}
	return []int32{int32(s.pid), int32(s.presence.pid.Load())}
}

// awaitEnd waits until the server has noticed that connections were cut, which it does within milliseconds.
func (s *Store) awaitEnd(pids []int32) error {
	if len(pids) == 0 {
		return nil
	}
	c, err := s.db.connect(context.Background())
	if err != nil {
		return nil // the server is gone, too
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for range 2000 {
		_, there, err := c.number("SELECT 1 FROM pg_stat_activity WHERE pid = ANY ($1) LIMIT 1", pids)
		if err != nil || !there {
			break
		}
		<-again.C
	}
	return c.close()
}

// shut lets go of everything. The lock is given free last.
func (s *Store) shut(how func(*conn) error) error {
	s.closed = true
	s.hints.close()
	errs := []error{s.readers.Close()}
	s.sideMu.Lock()
	s.side.closed = true
	if s.side.c != nil && !s.side.c.gone() {
		errs = append(errs, how(s.side.c))
	}
	s.sideMu.Unlock()
	if s.w != nil && !s.w.gone() {
		errs = append(errs, how(s.w))
	}
	if s.presence != nil {
		errs = append(errs, s.presence.end(how))
	}
	return errors.Join(errs...)
}
