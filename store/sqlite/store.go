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
// A function given to View may not call Update, nor the other way round: the two share the connection of an in-memory
// database, and a view of a file waits for the running update.
//
// Locks are taken in this order, and each is given back before one above it is taken again:
//
//	Store.mu      for the whole of an Update with its callbacks, for a flush, and for the instant at which a view begins
//	conn.mu       for one call of the driver
//	guards        to find the guard of a connection, when SQLite asks while it compiles a statement
//
// conn.mu is needed beside Store.mu: a callback that outlives its deadline may still run SQL of the user's on the connection
// of the writer, in a goroutine of its own, when its Update goes on or is over.
type Store struct {
	path   string // as errors name it
	set    settings
	now    func() time.Time
	log    *slog.Logger
	nets   *tables.Nets
	ways   waypoints    // in long histories
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
	lost    error     // why the file is not this store's any more; see presence
	version int64     // PRAGMA data_version, as Changed saw it last
	written int       // rows written since the last checkpoint
	wal     logFile   // keeps no room for memory, and for a file whose commits do not wait for the disk

	appended tables.Appended // memory for the next update, see keepBuffers
	buf      []byte

	aged  atomic.Bool // the window is old enough to be written
	timer *time.Timer // sets aged; armed while the window holds something

	behind behind // what keeps the window from being written

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
// The transaction, with what a crash leaves if it comes after each line:
//
//	BEGIN IMMEDIATE            nothing
//	f: reads, SQL of the user  nothing. Entries are in memory; what the user wrote is in the page cache or, if it is large, in frames of the
//	                           log without a commit mark, which SQLite skips when the file is opened
//	INSERT INTO journal ...    nothing
//	upserts of the window      nothing, and the rows are replayed from the entries of earlier commits
//	COMMIT                     all of it, or nothing: the last frame has the mark, and SQLite reads a log up to the last whole commit
//	absorb                     the entries. The tables lack them, and get them when the file is opened; see recover
//	return                     the entries. The caller does not know, and asks again with the same idempotency key
//
// The context is looked at only before the transaction. SQLite answers an interrupted statement that writes by rolling back
// the whole transaction, so the context of one caller would undo the commands of others in the same batch.
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
	s.wal.keepRoom()
	tx := &transaction{s: s, seq: s.seq, appended: s.appended[:0], buf: s.buf[:0]}
	committed := false
	defer func() { // also when f panics
		tx.end()
		s.keepBuffers(tx)
		if !committed {
			s.rollback()
		}
	}()
	if err := f(tx); err != nil {
		return err
	}
	// After f and in one go: f decides which commands stay, and those that were undone have left nothing to be deleted.
	if err := tx.write(); err != nil {
		return explain(s.path, err)
	}
	// The window goes with a commit that waits for the disk anyway, so it costs no sync of its own. It holds the commands before this
	// transaction: the position that it is written with is theirs, and a crash after the commit has this transaction replayed.
	wrote, err := s.writeAged()
	if err != nil {
		return explain(s.path, err)
	}
	// A callback that was left behind may still be running SQL on this connection. It is refused from here on: what it wrote after the
	// last look at it would be committed unseen, and what it wrote after the commit would be in the transaction of another command.
	tx.end()
	if err := s.w.run("COMMIT"); err != nil {
		return explain(s.path, err)
	}
	committed = true
	// Only now: of a commit that failed the tables have nothing, and the window is what a later one writes. The changes of this
	// transaction come after it is cleared, since they were not written with it.
	if wrote {
		s.clearWindow()
	}
	s.absorb(tx)
	return nil
}

// keepBuffers lets the next update use the memory of this one, unless a single large command made it grow.
func (s *Store) keepBuffers(tx *transaction) {
	// The entries and values that the buffer still points to would otherwise live until an update as large as this one.
	clear(tx.appended)
	s.appended, s.buf = tx.appended[:0], tx.buf[:0]
	if cap(s.appended) > 4096 || cap(s.buf) > 1<<20 {
		s.appended, s.buf = nil, nil
	}
}

// writable says why the store cannot be written, if so.
func (s *Store) writable() error {
	switch {
	case s.closed:
		return errClosed
	case s.readOnly:
		return at(s.path, "%w: it was opened so", store.ErrReadOnly)
	}
	return nil
}

// rollback ends the open transaction. SQLite may have done so already, after an error that concerns all of it.
//
// It is what ends an update that failed at any line, so it must not fail for lack of a transaction. With the transaction
// still open the next BEGIN would fail, and every later command with it; that is why it is logged.
func (s *Store) rollback() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if err := s.w.execLocked("ROLLBACK"); err != nil && s.w.inTransactionLocked() {
		s.log.Error("a transaction could not be rolled back", "database", s.path, "error", err)
	}
}

// writeAged writes the window with the transaction that is open anyway, if it is full or old.
func (s *Store) writeAged() (bool, error) {
	// Aged is set by a timer, outside of the lock. An update that misses it by an instant leaves the window to onAge, which
	// waits for a moment between updates, or to the update after it.
	if s.window.commands == 0 || s.window.commands < s.set.window && !s.aged.Load() {
		return false, nil
	}
	return true, s.writeWindow()
}

func (s *Store) writeWindow() error {
	if err := s.window.write(s.rows); err != nil {
		return err
	}
	s.written += len(s.window.cases) + len(s.window.items) + len(s.window.jobs)
	// In the same transaction as the rows. Apart from them, a crash in between would have entries replayed that the tables
	// show already, which fails since an entry names the one that it follows, or leave entries out for good.
	return s.w.run("UPDATE meta SET value = ? WHERE name = 'projected_seq'", s.window.seq)
}

// absorb adds a committed transaction to the window.
func (s *Store) absorb(tx *transaction) {
	s.seq = tx.seq
	s.written += len(tx.appended)
	for i := range tx.appended {
		s.window.add(tx.appended[i].Entry.Seq, tx.appended[i].Entry.Changes, tx.appended[i].Dirty)
	}
	// The age of a window is that of its oldest command, so a timer that runs is left alone: commands that keep coming would
	// otherwise put the write off until the window is full.
	if s.window.commands == len(tx.appended) && len(tx.appended) > 0 { // it was empty
		s.aged.Store(false)
		s.timer.Reset(s.set.age)
	}
}

// flush brings the tables up to the newest command. It need not wait for the disk: the journal is there, and would be
// replayed if the power failed now. How a commit waits can only be changed between transactions, and is changed back also after an
// error: the next command must not be acknowledged before it is on the disk.
func (s *Store) flush() error {
	if err := s.present(); err != nil || s.window.commands == 0 {
		return err
	}
	if s.memory != nil {
		return explain(s.path, s.flushInTransaction())
	}
	// With NORMAL a commit appends to the log and does not sync it. The frames lie behind those of commits that were synced,
	// and are synced by the next one that is.
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
	// A timer that fires during the flush finds the lock taken and is set again. What it then meets is an empty window, or
	// one that is written somewhat early.
	s.timer.Stop()
	s.aged.Store(false)
	return nil
}

// clearWindow empties the window, once the tables have what it held.
func (s *Store) clearWindow() {
	s.window.clear()
	s.behind.over(s.log, s.path)
}

// onAge runs when the window has held something for long enough. A running update takes it along; if that one fails, the timer, which
// is set again, is what tries next. It does not wait for the lock: callbacks of the update run under it, for as long as they like.
func (s *Store) onAge() {
	s.aged.Store(true)
	if !s.mu.TryLock() {
		s.timer.Reset(s.set.age)
		return
	}
	defer s.mu.Unlock()
	// The window may have been written, and restarted, since the timer fired. It then has a timer of its own.
	if s.closed || s.lost != nil || !s.aged.Load() {
		return
	}
	if err := s.flush(); err != nil {
		s.timer.Reset(s.behind.again(s.log, s.now(), s.path, err, s.set.age))
	}
}

// checkpointRows is after how many rows Idle moves the write-ahead log into the file.
//
// SQLite does that by itself when a commit finds 10,000 pages in the log, and the caller of that commit waits for it. An
// engine that has nothing to do moves them earlier. The count is of rows and not of pages, as it costs no question: a row is
// less than a page, mostly.
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
	// PASSIVE copies the pages that no reader needs the old form of, and waits neither for readers nor for a program that
	// writes. FULL and TRUNCATE wait, with the lock of the store held.
	return explain(s.path, s.w.exec("PRAGMA wal_checkpoint(PASSIVE)"))
}

// Close implements [store.Store].
//
// Its flush is for other programs, and for the next Open, which then has nothing to replay; that the tables could not be
// written is no loss. So what was opened is closed in any case.
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
// The window is dropped without being written, which is what a killed process leaves behind. The difference to one is that
// SQLite closes its files and moves the log into the database, so crash tests of the files kill real processes.
func (s *Store) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.shut()
}

// shut lets go of everything.
func (s *Store) shut() error {
	s.closed = true
	s.timer.Stop()
	s.wal.close()
	// The readers go first: the last connection that closes moves the log into the file, and a reader would keep the writer
	// from being the last. The lock goes at the end: the process that gets it must not see the log vanish.
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	switch {
	case s.memory != nil:
		s.memory.release()
	case s.w != nil:
		errs = append(errs, s.keepOthersLog(), s.w.close())
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
