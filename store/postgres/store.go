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

// format is the version of the entries that this program writes.
const format = 1

// maxReaders is how many views run at the same time, each on its own connection.
const maxReaders = 4

// Store is a database of cases. Get one from the Opener that [Open] returns.
//
// Locks of this process, in the order in which they are taken; mu is held for the whole of an Update, with its
// callbacks:
//
//	Store.mu        the writer's connection, and the state for the next commit
//	Store.fleetMu   the second connection, for the fleet
//	conn.mu         one call of the driver
//	hints.mu        changes to notify other engines of; not held during calls of the server
//
// A Tick takes fleetMu without mu, so that an update that waits two seconds for a lock of the server does not delay the
// heartbeat of this engine. Code that needs both takes mu first.
//
// Locks of the server, in the order in which a transaction takes them:
//
//	in f      advisory locks of business keys, and rows of root cases (LockCase), as the commands request them
//	commit    processes: the row of this engine, shared, which is the fence
//	          cases: the rows of the root cases of the commit, in the order of their ids
//	          journal, idempotency_keys: by their primary keys, as rows are inserted
//	          cases, work_items, jobs, steps, messages: each in the order of its keys
//
// The locks of f have no common order. If two engines deadlock, the server ends one transaction after a second, and
// that engine runs its batch again.
type Store struct {
	db       database
	now      func() time.Time
	log      *slog.Logger
	nets     *tables.Nets
	readers  *sqlkit.Pool[*conn]
	readOnly bool
	shared   bool // whether several engines may have the database open

	ending context.Context // canceled when the store begins to close
	end    context.CancelFunc

	mu       sync.Mutex // guards the writer and all below
	w        *conn      // nil for a reader, and while there is no connection
	presence *presence  // nil for a reader
	token    int64      // identifies the locks of this engine: that it is live, and which server process commits for it
	self     int64      // number of this engine in the table processes
	epoch    int64      // counts its connections; with the number, commits are fenced by it
	pid      uint32     // of the writer's server process
	base     int64      // of positions; see position.go
	ahead    ahead      // the transaction of the next update
	deltas   int        // commits since the last fold of the counts
	rejoined bool       // this engine has lost its jobs, and the next commit must report that
	doubt    bool       // the outcome of a commit is unknown
	closed   bool
	lost     error // why this store has lost the database

	window *window

	revs revisions
	last lastEntry // the entry that this engine appended last; zero if there is none

	prints    atomic.Pointer[[]string] // the fingerprints of this engine's definitions
	number    atomic.Int64             // self, for the goroutine that listens
	others    atomic.Int64             // number of other engines at the last Tick
	hints     *hints
	fleetMu   sync.Mutex // guards fleetConn; taken after mu
	fleetConn fleetConn

	appended tables.Appended // memory for the next update
	buf      []byte
}

// Update implements [store.Store].
//
// What happens to an update whose process, connection or server ends:
//
//	while f runs              nothing is committed. The server rolls back when it notices the lost connection
//	before COMMIT is read     the same
//	after COMMIT              everything is committed, but the caller does not know. If only the connection was lost,
//	                          outcome finds that out; a caller that repeats the command with the same idempotency key
//	                          gets the stored result
func (s *Store) Update(ctx context.Context, f func(store.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The connection is replaced here, before f: f must read under the epoch that the commit is fenced with.
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.window.adjust()
	// The server's transaction has not begun yet; the first Append, or the first statement of the user's SQL, begins
	// it.
	tx := &transaction{serverTransaction: serverTransaction{s: s, w: s.w}, appended: s.appended[:0], buf: s.buf[:0]}
	tx.awaitParts = tx.landedLocked
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
	// After the commit, since an engine that is notified earlier would load the old tree.
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

// ready returns the reason if the store cannot be written. It replaces a lost connection.
func (s *Store) ready(ctx context.Context) error {
	switch {
	case s.closed:
		return errClosed
	case s.readOnly:
		return s.db.at("%w: it was opened so", store.ErrReadOnly)
	case s.lost != nil:
		return s.lost
	}
	// The lock of an engine that has the database alone belongs to another connection than the writer's. That
	// connection may have been lost, and the lock taken by another engine, while the writer's connection still works.
	if err := s.presence.check(); err != nil {
		return s.lose(err)
	}
	if s.w != nil && !s.w.gone() {
		return nil
	}
	return s.lose(s.db.explain(s.rejoin(ctx)))
}

// lose records that another engine has the database.
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
	// Before stillThere: waiting for one of four readers may take long, and the store may be closed meanwhile.
	c, err := s.readers.Get(ctx)
	if err != nil {
		return s.db.explain(err)
	}
	defer func() { s.readers.Put(c, !c.gone()) }()
	if err := s.stillThere(); err != nil {
		return err
	}
	// The window of an engine that was declared dead is written by others.
	if err := s.window.flush(); err != nil && !errors.Is(err, store.ErrFenced) {
		return err
	}
	c, until, err := s.snapshot(ctx, c)
	if err != nil {
		return s.db.explain(err)
	}
	c.ctx = ctx
	r := &reader{c: c, nets: s.nets, until: until}
	defer func() { // also when f panics
		r.end()
		c.ctx = context.Background()
		if e := c.exec(context.Background(), "ROLLBACK"); e != nil && err == nil {
			err = s.db.explain(e)
		}
	}()
	return s.db.explain(f(r))
}

// snapshot begins the transaction of a view. It replaces a connection that was lost while it was idle.
func (s *Store) snapshot(ctx context.Context, c *conn) (_ *conn, until int64, err error) {
	until, err = s.beginView(ctx, c)
	if err == nil || !c.gone() || ctx.Err() != nil {
		return c, until, err
	}
	fresh, err := s.db.connect(ctx, readerNeeds...)
	if err != nil {
		return c, 0, err
	}
	// In place, since the pool identifies the connection by its pointer.
	c.raw, c.pg, c.pid = fresh.raw, fresh.pg, fresh.pid
	until, err = s.beginView(ctx, c)
	return c, until, err
}

// stillThere returns the reason if the store cannot be read.
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

// foldAfter is the number of commits after which Idle folds the counts.
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
	// Otherwise this would run in the transaction that was begun ahead, and be rolled back when no update uses it.
	s.dropAhead()
	err := s.fold("counts", "count_deltas", "what, workflow, task, state")
	if err == nil {
		err = s.fold("ended", "ended_deltas", "hour, workflow, task, state, took")
	}
	if err == nil { // counts of zero belong to removed cases
		_, err = s.w.run(folding+" DELETE FROM @.ended WHERE n = 0 AND (SELECT got FROM mine)", "counts")
	}
	return s.db.explain(err)
}

// folding begins the statements that fold counts. Only one engine folds at a time, and the others skip it: two that
// lock the rows in different orders would deadlock.
const folding = "WITH mine AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(" + lockKey + ") AS got)"

// fold adds the rows of a table of deltas to the counts, by the columns of their key.
//
// One statement moves the rows, so they are deleted and added in the same transaction. A reader sums both tables and
// counts each change once, before and after. A crash leaves both as they were.
//
//	counts           case order started 40            41
//	count_deltas     +1, -1, +1                       none; new deltas of later commits remain for the next time
func (s *Store) fold(counts, deltas, key string) error {
	_, err := s.w.run(folding+", d AS (DELETE FROM @."+deltas+" WHERE (SELECT got FROM mine) RETURNING *) "+
		"INSERT INTO @."+counts+" AS c ("+key+", n) SELECT "+key+", sum(n) FROM d GROUP BY "+key+" HAVING sum(n) <> 0 "+
		"ON CONFLICT ("+key+") DO UPDATE SET n = c.n + excluded.n", "counts")
	return err
}

// Close implements [store.Store].
//
// It deletes the row of the engine and frees its jobs before it closes the connections: other engines are notified and
// take the jobs immediately, not only after missed heartbeats.
func (s *Store) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.dropAhead()
	if err := s.window.flush(); err != nil { // leave writes it from the journal
		s.log.Warn("the tables could not be written", "database", s.db.name, "error", err)
	}
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
	// No ROLLBACK, since a killed process sends none.
	s.forgetAhead()
	pids := s.pids()
	err := s.shut((*conn).cut)
	return errors.Join(err, s.awaitEnd(pids))
}

// pids returns the server processes of the connections that identify this engine; none through a pooler, which keeps
// them.
func (s *Store) pids() []int32 {
	if s.db.set.poll > 0 || s.presence == nil {
		return nil
	}
	return []int32{int32(s.pid), int32(s.presence.pid.Load())}
}

// awaitEnd waits until the server has noticed that connections were closed, which takes milliseconds.
func (s *Store) awaitEnd(pids []int32) error {
	if len(pids) == 0 {
		return nil
	}
	c, err := s.db.connect(context.Background())
	if err != nil {
		return nil // the server is down, too
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

// shut closes all connections. The lock is released last.
func (s *Store) shut(how func(*conn) error) error {
	s.closed = true
	s.hints.close()
	// The presence is closed last, since its session has the lock that shows that this engine is live. While the
	// writer's connection is open, other engines must not treat its commit as that of a dead engine.
	errs := []error{s.readers.Close()}
	s.fleetMu.Lock()
	s.fleetConn.closed = true
	if s.fleetConn.c != nil && !s.fleetConn.c.gone() {
		errs = append(errs, how(s.fleetConn.c))
	}
	s.fleetMu.Unlock()
	errs = append(errs, s.window.close(how))
	if s.w != nil && !s.w.gone() {
		errs = append(errs, how(s.w))
	}
	if s.presence != nil {
		errs = append(errs, s.presence.end(how))
	}
	return errors.Join(errs...)
}
