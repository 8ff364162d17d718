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
//
// Locks of this process, in the order in which they are taken; mu is held for the whole of an Update, with its callbacks:
//
//	Store.mu        the writer's connection, and what the next commit is made with
//	Store.sideMu    the connection beside it, for what concerns the fleet
//	conn.mu         one call of the driver
//	hints.mu        what the others are to be notified of; it is held for no call of the server
//
// A Tick takes sideMu without mu: an update that waits for a lock of the server for two seconds must not keep this engine
// from its heartbeat. What needs both takes mu first.
//
// Locks of the server, in the order in which a transaction takes them:
//
//	in f         advisory locks of business keys, and rows of root cases (LockCase), in the order in which the commands ask for them
//	commit       processes: the row of this engine, shared, which is the fence
//	             cases: the rows of root cases that the commit is about, in the order of their ids
//	             journal, idempotency_keys: by their primary keys, as rows are inserted
//	             cases, work_items, jobs, steps, messages: each in the order of its keys
//
// Those of f have no order of their own. Two engines that take them crosswise are a deadlock, which the server ends after a
// second; one of the two runs its batch again.
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

	revs revisions
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
//
// What becomes of an update whose process, connection or server ends:
//
//	while f runs              nothing happened. The server rolls back what SQL of the user's has done, when it notices the end of the connection
//	before COMMIT is read     the same
//	after COMMIT              all of it happened, though the caller does not know. If only the connection was lost, outcome finds that out;
//	                          a caller that asks again with the same idempotency key gets the result that is there
func (s *Store) Update(ctx context.Context, f func(store.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A connection is created again here, before f: what f reads must be read under the epoch that the commit is fenced with.
	if err := s.ready(ctx); err != nil {
		return err
	}
	// The server's transaction is not begun yet: that is done by the first Append, or by the first statement of the user's.
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
	// After the commit: an engine that hears of it before would load the tree as it was.
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

// ready reports why the store cannot be written, if so. A connection that was lost is created again.
func (s *Store) ready(ctx context.Context) error {
	switch {
	case s.closed:
		return errClosed
	case s.readOnly:
		return s.db.at("%w: it was opened so", store.ErrReadOnly)
	case s.lost != nil:
		return s.lost
	}
	// The lock of an engine that has the database alone is on another connection than the writer's. That one may have been
	// lost, and the lock taken by another engine, while the writer's is well.
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
	// Before stillThere: to wait for one of four readers may take long, and the store may be closed meanwhile.
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

// REPEATABLE READ has all queries of a view see one state. READ ONLY is a guard against the user's SQL, and has the server
// give the transaction no number, so that a view that is open for long does not hold up the horizon of position.go.
const beginView = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// snapshot begins the transaction of a view. A connection that was idle may have been lost meanwhile, and is created again.
func (s *Store) snapshot(ctx context.Context, c *conn) (*conn, error) {
	_, err := c.begin(ctx, beginView)
	if err == nil || !c.gone() || ctx.Err() != nil {
		return c, err
	}
	fresh, err := s.db.connect(ctx, readerNeeds...)
	if err != nil {
		return c, err
	}
	// In place, as the pool knows the connection by its pointer.
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
	// It would otherwise be the transaction that this is done in, and be rolled back when nothing wants it.
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
//
// One statement moves the rows: they are deleted and added up in the same transaction. A reader sums both tables, so it sees
// each change once, before and after. A crash leaves both as they were.
//
//	counts           case order started 40            41
//	count_deltas     +1, -1, +1                       none; those that a commit adds meanwhile stay for the next time
func (s *Store) fold(counts, deltas, key string) error {
	_, err := s.w.run(folding+", d AS (DELETE FROM @."+deltas+" WHERE (SELECT got FROM mine) RETURNING *) "+
		"INSERT INTO @."+counts+" AS c ("+key+", n) SELECT "+key+", sum(n) FROM d GROUP BY "+key+" HAVING sum(n) <> 0 "+
		"ON CONFLICT ("+key+") DO UPDATE SET n = c.n + excluded.n", "counts")
	return err
}

// Close implements [store.Store].
//
// Its row goes, and its jobs are free, before the connections are closed: another engine takes them at once, by the
// notification, and not when it misses a heartbeat.
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
	// No ROLLBACK: a killed process sends none either.
	s.forgetAhead()
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
	// The presence goes last, as its session has the lock by which others see that this engine lives. While the writer's
	// connection is there, they must not take what it may still commit for that of a dead one.
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
