package sqlite

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
)

// transaction implements [store.Tx]. Entries that the engine appends stay in memory until the commit, so rolling back
// one of several commands costs nothing unless the user's SQL ran.
//
// Queries in a transaction use its appended entries first, then the window, then the tables; see newer.
type transaction struct {
	s        *Store
	seq      int64
	appended tables.Appended
	replies  []reply
	settings []store.Setting // to be written by the commit
	buf      []byte          // the encoded events of all appended entries; a buffer of the store

	user *sqlkit.UserDB // of the running savepoint function, or of the whole transaction; nil until DB is called

	// Guarded by the connection's lock, since the user's SQL uses them.
	depth  int   // number of running savepoint functions
	saved  int   // number of those that have a savepoint in the database
	broken error // why the transaction can only be rolled back
	ended  bool
}

// A reply is written to the row of its request, from which the process that left the request takes it.
type reply struct {
	id     int64
	answer store.Answer
}

func (tx *transaction) usable() error {
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	return tx.usableLocked()
}

// After an error that undoes the transaction, each use returns that error: the caller cannot continue by accident in a
// transaction that SQLite has ended.
func (tx *transaction) usableLocked() error {
	// A callback that exceeds its deadline may call this in its goroutine while the transaction ends, hence the lock.
	if tx.ended {
		return sqlkit.ErrOver
	}
	return tx.broken
}

// Append implements [store.Tx].
func (tx *transaction) Append(_ context.Context, e *store.Entry, t *state.Tree) error {
	if err := tx.usable(); err != nil {
		return err
	}
	root := t.Case(t.Root)
	if root == nil {
		return fmt.Errorf("append %q: the tree of case %s is empty", e.Command, t.Root)
	}
	for _, event := range e.Changes {
		opened, ok := event.(*state.CaseOpened)
		if !ok {
			continue
		}
		// An entry that names a missing definition could never be decoded, not even to remove its case. Definitions are
		// cached in memory, so this needs no statement after the first time.
		if _, err := tx.s.nets.Get(tx.s.w, opened.Case.Fingerprint); err != nil {
			return fmt.Errorf("append %q: register workflow %s first: %w", e.Command, opened.Case.Workflow, tx.met(err))
		}
	}
	// It is checked here instead of by a constraint when the rows are written: that error would fail the whole
	// transaction, with the commands of others.
	if e.Key != "" {
		if _, err := tx.answered(e.Key); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(tx.met(err), fmt.Errorf("append %q: key %q is taken: %w", e.Command, e.Key, store.ErrConflict))
		}
	}
	// Positions are assigned without gaps and without a query, since only one process writes. A rollback to a savepoint
	// frees its positions, since nothing of it was written.
	tx.seq++
	e.Seq, e.Prev, e.Root = tx.seq, root.LastSeq, t.Root
	start := len(tx.buf)
	// Encoded now, since the next command may change the tree.
	tx.buf = state.AppendChanges(tx.buf, e.Changes, t)
	tx.appended = append(tx.appended, tables.Command{Entry: e, Dirty: t.End(e.Seq), Start: start, End: len(tx.buf)})
	return nil
}

// DB implements [store.Tx].
func (tx *transaction) DB() domain.DB {
	if tx.usable() != nil {
		return sqlkit.DeadDB()
	}
	if tx.user == nil {
		tx.user = sqlkit.NewUserDB(tx.s.w.raw, tx, domain.SQLite, "")
	}
	return tx.user
}

// end makes the transaction unusable.
func (tx *transaction) end() {
	// The lock waits for a call of the user's SQL in progress; later calls find that the transaction has ended.
	tx.s.w.mu.Lock()
	tx.ended = true
	tx.s.w.mu.Unlock()
	if tx.user != nil {
		tx.user.End()
	}
}

// textIn returns bytes as a string without a copy; it must not be used after the bytes change. The events are most of
// what a command writes, and the driver copies them anyway.
func textIn(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// write writes the appended entries and the replies to the database.
func (tx *transaction) write() error {
	if err := tx.usable(); err != nil {
		return err
	}
	w := tx.s.w
	for i := range tx.appended {
		a := &tx.appended[i]
		e := a.Entry
		// The position is the primary key and increases, so each row is appended to the last page of the table.
		// journal_actor and journal_named are partial indexes, which do not contain entries of the engine itself, since
		// they have no actor.
		if err := w.run("INSERT INTO journal (seq, prev, root, at, command, actor, key, answer, events) "+
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", e.Seq, e.Prev, textOf(e.Root), state.Micros(e.At), e.Command, e.By,
			nullable(e.Key), jsonOf(e.Answer), textIn(tx.buf[a.Start:a.End])); err != nil {
			return err
		}
		if e.Key == "" {
			continue
		}
		// The key may be in the table for a case that was removed.
		if err := w.run("INSERT OR REPLACE INTO idempotency_keys (key, seq) VALUES (?, ?)", e.Key, e.Seq); err != nil {
			return err
		}
	}
	if err := tx.writeReplies(); err != nil {
		return err
	}
	return tx.writeSettings()
}
