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

// transaction implements [store.Tx]. What the engine appends stays in memory until the commit, so that undoing one
// command of many costs nothing as long as no SQL of the user's was run.
//
// What is asked of a transaction is answered from what it has appended, then from the window, then from the tables; see
// newer.
type transaction struct {
	s        *Store
	seq      int64
	appended tables.Appended
	replies  []reply
	settings []store.Setting // to be kept
	buf      []byte          // the events of all appended entries, one after the other; the store's, so that it is made once

	user *sqlkit.UserDB // of the running savepoint function, or of the whole transaction; nil until DB is called

	// Guarded by the connection's lock, since the user's SQL looks at them.
	depth  int   // how many savepoint functions are running
	saved  int   // how many of them have a savepoint in the database
	broken error // why the transaction can only be rolled back
	ended  bool
}

type reply struct {
	id     int64
	answer store.Answer
}

func (tx *transaction) usable() error {
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	return tx.usableLocked()
}

func (tx *transaction) usableLocked() error {
	// A callback that outlives its deadline may call this in its goroutine while the transaction ends, hence the lock.
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
		// An entry that names a definition which the file lacks could not be decoded any more, not even to remove its case.
		// A definition that was met once is in memory, so this costs no statement.
		if _, err := tx.s.nets.Get(tx.s.w, opened.Case.Fingerprint); err != nil {
			return fmt.Errorf("append %q: register workflow %s first: %w", e.Command, opened.Case.Workflow, tx.met(err))
		}
	}
	// It is looked for now, and not left to a constraint when the rows are written: then the error would be that of the whole
	// transaction, and the commands of others in it would fail with the one that has the key.
	if e.Key != "" {
		if _, err := tx.answered(e.Key); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(tx.met(err), fmt.Errorf("append %q: key %q is taken: %w", e.Command, e.Key, store.ErrConflict))
		}
	}
	// Positions are given out without a gap and without asking the database: only one process writes. What a savepoint
	// undoes gives its positions back, since nothing of it was written.
	tx.seq++
	e.Seq, e.Prev, e.Root = tx.seq, root.LastSeq, t.Root
	start := len(tx.buf)
	// Encoded now, as the next command may change the tree.
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
		tx.user = sqlkit.NewUserDB(tx.s.w.raw, tx, domain.SQLite)
	}
	return tx.user
}

// end makes the transaction unusable.
func (tx *transaction) end() {
	// The lock waits for a call of the user's SQL that is under way, and a later one meets the mark.
	tx.s.w.mu.Lock()
	tx.ended = true
	tx.s.w.mu.Unlock()
	if tx.user != nil {
		tx.user.End()
	}
}

// textIn is bytes as a text, without a copy: it must be gone before the bytes change. The events of a command are most
// of what it writes, and the driver copies them once more.
func textIn(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// write puts what was appended and replied into the database.
func (tx *transaction) write() error {
	if err := tx.usable(); err != nil {
		return err
	}
	w := tx.s.w
	for i := range tx.appended {
		a := &tx.appended[i]
		e := a.Entry
		// The position is the primary key and rises, so each row is appended to the last page of the table. journal_actor
		// and journal_named are partial: an entry of the engine's own, which has no actor, is in neither.
		if err := w.run("INSERT INTO journal (seq, prev, root, at, command, actor, key, answer, events) "+
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", e.Seq, e.Prev, textOf(e.Root), state.Micros(e.At), e.Command, e.By,
			nullable(e.Key), jsonOf(e.Answer), textIn(tx.buf[a.Start:a.End])); err != nil {
			return err
		}
		if e.Key == "" {
			continue
		}
		// The key may be that of a case that was removed, and is still in the table.
		if err := w.run("INSERT OR REPLACE INTO idempotency_keys (key, seq) VALUES (?, ?)", e.Key, e.Seq); err != nil {
			return err
		}
	}
	if err := tx.writeReplies(); err != nil {
		return err
	}
	return tx.writeSettings()
}
