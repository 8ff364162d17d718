package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// Store is a database of cases. Get one from the Opener that [File] or [Memory] returns.
//
// A function given to View must not call Update, and the reverse: both share the connection of an in-memory database,
// and a view of a file waits for the running update.
//
// Locks are taken in this order, and each is released before one above it is taken again:
//
//	Store.mu      during an Update with its callbacks, during a flush, and when a view begins
//	conn.mu       during one call of the driver
//	guards        to find the guard of a connection, when SQLite calls it while it compiles a statement
//
// conn.mu is needed in addition to Store.mu: a callback that exceeds its deadline may still run the user's SQL on the
// writer's connection, in its own goroutine, while its Update continues or after it has ended.
type Store struct {
	path   string // for errors
	set    settings
	now    func() time.Time
	log    *slog.Logger
	nets   *tables.Nets
	ways   waypoints    // of long histories
	memory *memory      // nil for a file
	lock   *flock.Flock // taken by Open, and then kept by files; nil for a reader and for memory

	readOnly bool

	mu      mutex // guards the writer and all below
	w       *conn // nil for a reader of a file
	rows    *rowWriter
	seq     int64 // journal position of the newest command
	window  window
	closed  bool
	files   *presence // nil for a reader and for memory
	lost    error     // why this store has lost the file; see presence
	version int64     // PRAGMA data_version at the last call of Changed
	written int       // rows written since the last checkpoint
	wal     logFile   // preallocates nothing for memory, and for a file whose commits do not wait for the disk
	space   space

	appended tables.Appended // memory for the next update, see keepBuffers
	buf      []byte

	aged  atomic.Bool // the window is old enough to be written
	timer *time.Timer // sets aged; runs while the window is not empty

	behind behind // failures to write the window

	readers *sqlkit.Pool[*conn] // nil for memory
}

// settings are what the options of an Opener set.
type settings struct {
	synchronous string
	window      int
	age         time.Duration
}

// Update implements [store.Store].
//
// The steps of the transaction, and what is stored if the process crashes after each:
//
//	BEGIN IMMEDIATE            nothing
//	f: reads, the user's SQL   nothing. Entries are in memory; user rows are in the page cache or, if that is full,
//	                           in frames of the log without a commit mark, which SQLite ignores on opening
//	INSERT INTO journal ...    nothing
//	upserts of the window      nothing; the rows are replayed from the entries of earlier commits
//	COMMIT                     everything or nothing: the last frame has the mark, and SQLite reads a log up to the
//	                           last complete commit
//	absorb                     the entries. The tables get them when the file is opened; see recover
//	return                     the entries. The caller does not know, and repeats the command with its idempotency key
//
// The context is checked only before the transaction. If a write statement is interrupted, SQLite rolls back the whole
// transaction, so the context of one caller would undo the commands of others in the batch.
func (s *Store) Update(ctx context.Context, f func(store.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	s.keepRoom()
	tx := &transaction{s: s, seq: s.seq, appended: s.appended[:0], buf: s.buf[:0]}
	committed := false
	defer func() { // also when f panics
		tx.end()
		s.keepBuffers(tx)
		if !committed {
			s.rollback()
			s.space.due = true // the disk may be full
		}
	}()
	if err := f(tx); err != nil {
		return err
	}
	// After f and all at once: f decides which commands are kept, so nothing has to be deleted for those that were
	// rolled back.
	if err := tx.write(); err != nil {
		return explain(s.path, err)
	}
	// The window is written with a commit that waits for the disk anyway, so it needs no sync of its own. It has the
	// commands before this transaction, and its position is theirs: after a crash, this transaction is replayed.
	wrote, err := s.writeAged()
	if err != nil {
		return explain(s.path, err)
	}
	// A callback that has timed out may still be running SQL on this connection. It is refused from here on: later SQL
	// would be committed without a check for errors, or after the commit run in the transaction of another command.
	tx.end()
	if err := s.w.run("COMMIT"); err != nil {
		return explain(s.path, err)
	}
	committed = true
	// Only after the commit: if it failed, the tables lack the window, which a later commit must write. The changes of
	// this transaction are added after the window is cleared, since they were not written with it.
	if wrote {
		s.clearWindow()
	}
	s.absorb(tx)
	return nil
}

// keepBuffers lets the next update use the memory of this one, unless a single large command made it grow.
func (s *Store) keepBuffers(tx *transaction) {
	// Otherwise the buffer would keep its entries and values in memory until an equally large update.
	clear(tx.appended)
	s.appended, s.buf = tx.appended[:0], tx.buf[:0]
	if cap(s.appended) > 4096 || cap(s.buf) > 1<<20 {
		s.appended, s.buf = nil, nil
	}
}

// writable returns the reason if the store cannot be written.
func (s *Store) writable() error {
	switch {
	case s.closed:
		return errClosed
	case s.readOnly:
		return at(s.path, "%w: it was opened so", store.ErrReadOnly)
	}
	return nil
}

// rollback ends the open transaction. SQLite may have done so already, after an error that concerns the whole
// transaction.
//
// It is called after any failure of an update, so it must not fail if there is no transaction. If the transaction
// stayed open, the next BEGIN and every later command would fail; that is why a failure is logged.
func (s *Store) rollback() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if err := s.w.execLocked("ROLLBACK"); err != nil && s.w.inTransactionLocked() {
		s.log.Error("a transaction could not be rolled back", "database", s.path, "error", err)
	}
}

// writeAged writes the window with the transaction that is open anyway, if it is full or old.
func (s *Store) writeAged() (bool, error) {
	// A timer sets aged, without the lock. If it fires just after this check, onAge writes the window between updates,
	// or the next update does.
	if s.window.commands == 0 || s.window.commands < s.windowSize() && !s.aged.Load() {
		return false, nil
	}
	return true, s.writeWindow()
}

func (s *Store) writeWindow() error {
	if err := s.window.write(s.rows); err != nil {
		return err
	}
	s.written += len(s.window.cases) + len(s.window.items) + len(s.window.jobs)
	// In the same transaction as the rows. Otherwise, after a crash in between, entries would be replayed that are in
	// the tables already, which fails since an entry names its predecessor, or entries would be skipped.
	return s.w.run("UPDATE meta SET value = ? WHERE name = 'projected_seq'", s.window.seq)
}

// absorb adds a committed transaction to the window.
func (s *Store) absorb(tx *transaction) {
	s.seq = tx.seq
	s.written += len(tx.appended)
	for i := range tx.appended {
		s.window.add(tx.appended[i].Entry.Seq, tx.appended[i].Entry.Changes, tx.appended[i].Dirty)
	}
	// The age of a window is that of its oldest command, so a running timer is not reset: otherwise a steady stream of
	// commands would delay the write until the window is full.
	if s.window.commands == len(tx.appended) && len(tx.appended) > 0 { // it was empty before
		s.aged.Store(false)
		s.timer.Reset(s.set.age)
	}
}

// flush brings the tables up to the newest command. It need not wait for the disk: after a power failure, the journal
// is replayed. The synchronous mode can only be changed between transactions, and is restored also after an error: the
// next command must not be acknowledged before it is on disk.
func (s *Store) flush() error {
	if err := s.present(); err != nil || s.window.commands == 0 {
		return err
	}
	if s.memory != nil {
		return explain(s.path, s.flushInTransaction())
	}
	// With NORMAL a commit appends to the log without a sync. Its frames follow those of synced commits, and the next
	// synced commit includes them.
	if err := s.w.exec("PRAGMA synchronous=NORMAL"); err != nil {
		return explain(s.path, err)
	}
	err := s.flushInTransaction()
	return errors.Join(explain(s.path, err), s.w.exec("PRAGMA synchronous="+s.set.synchronous))
}

func (s *Store) flushInTransaction() error {
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.writeWindow(); err != nil {
		s.rollback()
		return err
	}
	if err := s.w.run("COMMIT"); err != nil {
		s.rollback()
		return err
	}
	s.clearWindow()
	// A timer that fires during the flush cannot take the lock, and is set again. It then finds an empty window, or one
	// that is written somewhat early.
	s.timer.Stop()
	s.aged.Store(false)
	return nil
}

// clearWindow empties the window after it was written to the tables.
func (s *Store) clearWindow() {
	s.window.clear()
	s.behind.over(s.log, s.path)
}

// onAge runs when the window is old enough to be written. A running update writes it; if that update fails, the timer,
// which is set again, retries. onAge does not wait for the lock, which is held while callbacks of an update run,
// without a limit.
func (s *Store) onAge() {
	s.aged.Store(true)
	if !s.mu.TryLock() {
		s.timer.Reset(s.set.age)
		return
	}
	defer s.mu.Unlock()
	// The window may have been written, and filled again, since the timer fired. It has a new timer then.
	if s.closed || s.lost != nil || !s.aged.Load() {
		return
	}
	if err := s.flush(); err != nil {
		s.timer.Reset(s.behind.again(s.log, s.now(), s.path, err, s.set.age))
	}
}

// checkpointRows is the number of written rows after which Idle moves the write-ahead log into the file.
//
// SQLite does that itself when a commit finds 10,000 pages in the log, and the caller of that commit waits. An idle
// engine does it earlier. Rows are counted instead of pages, since that needs no query; a row is mostly smaller than a
// page.
const checkpointRows = 4000

// Idle implements [store.Store].
func (s *Store) Idle(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.w == nil {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	if s.written < checkpointRows || s.memory != nil {
		return nil
	}
	s.written = 0
	// PASSIVE copies the pages whose old versions no reader needs, and does not wait for readers or other writers. FULL
	// and TRUNCATE wait, with the lock of the store held.
	return explain(s.path, s.w.exec("PRAGMA wal_checkpoint(PASSIVE)"))
}

// Close implements [store.Store].
//
// The flush serves other programs and the next Open, which then has nothing to replay. If it fails, nothing is lost, so
// the files are closed in any case.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	var err error
	if s.w != nil {
		err = s.flush()
	}
	return errors.Join(err, s.shut())
}

// Kill implements [store.Killer].
//
// The window is dropped without being written, as in a killed process. But SQLite closes its files and moves the log
// into the database, so crash tests of the files kill real processes.
func (s *Store) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.shut()
}

// shut closes all connections and releases the lock.
func (s *Store) shut() error {
	s.closed = true
	s.timer.Stop()
	s.wal.close()
	// The readers are closed first: the last connection that is closed moves the log into the file, and must be the
	// writer's. The lock is released at the end: the next owner must not see the log disappear.
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	switch {
	case s.memory != nil:
		s.memory.release()
	case s.w != nil:
		errs = append(errs, s.keepForeignLog(), s.w.close())
	}
	if s.files != nil {
		errs = append(errs, s.files.end())
	} else if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if s.lock != nil {
		owned.remove(s.path)
	}
	return errors.Join(errs...)
}
