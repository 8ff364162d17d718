package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// transaction implements [store.Tx]. What the engine appends stays in memory until the commit, and the server's transaction
// begins with the user's SQL, if there is any.
//
//	Update
//	  f: Load, Append, ...     reads in transactions of one statement each, or in the server's transaction once there is one
//	  position                 BEGIN and its number, in one round trip, at the first Append that needs it; or one that was begun ahead
//	  DB                       BEGIN at the first statement of the user's SQL
//	  commit                   one round trip
//
// Reads before BEGIN are not of one snapshot. That is safe, since the commit compares each tree it depends on with the
// database: what was read while another engine committed is stale, and the batch is run again.
type transaction struct {
	s        *Store
	w        *conn
	gave     bool  // DB was called: the user may hold the connection
	xact     int64 // number of the server's transaction; 0 until an entry is appended
	first    int64 // position before its first entry
	seq      int64 // how many entries there are
	appended tables.Appended
	replies  []reply
	settings []store.Setting // to be kept
	buf      []byte          // the changes of all appended entries, one after the other

	expected map[workitem.CaseID]int64 // where the journals of trees end that the commit depends on
	offered  map[workitem.JobID]bool
	notifies bool              // its commit notifies the other engines of its root cases
	late     []workitem.CaseID // root cases that another engine changed after this transaction had its number

	marks   []mark // of the entries that are appended
	endings int    // how many of them are of trees that have ended, and were not sent
	parts   parts
	counts  *tally                       // of the rows that were queued
	revs    map[workitem.CaseID]revision // of the newest entries that were queued

	user *sqlkit.UserDB // of the running savepoint function, or of the whole transaction; nil until DB is called

	// Guarded by the connection's lock, since the user's SQL looks at them.
	begun   bool  // the server has a transaction
	users   bool  // the user's SQL ran in it
	depth   int   // how many savepoint functions are running
	saved   int   // how many of them have a savepoint in the server
	spoiled error // the first error since the innermost savepoint: the server refuses further statements of it
	broken  error // why the transaction can only be rolled back
	ended   bool
}

type reply struct {
	id     int64
	answer store.Answer
}

func (tx *transaction) usable() error {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	return tx.usableLocked()
}

func (tx *transaction) usableLocked() error {
	if tx.ended {
		return sqlkit.ErrOver
	}
	return tx.broken
}

// readable reports why the transaction cannot read, if so. The connection is free then.
func (tx *transaction) readable() error {
	if err := tx.usable(); err != nil {
		return err
	}
	return tx.landed()
}

// Document implements [tables.Source].
func (tx *transaction) Document(fingerprint string) (string, error) {
	if err := tx.landed(); err != nil {
		return "", err
	}
	return tx.w.Document(fingerprint)
}

// Fingerprint implements [tables.Source].
func (tx *transaction) Fingerprint(id workitem.CaseID) (string, error) {
	if err := tx.landed(); err != nil {
		return "", err
	}
	return tx.w.Fingerprint(id)
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
	if err := mustBeText(e); err != nil {
		return err
	}
	for _, event := range e.Changes {
		opened, ok := event.(*state.CaseOpened)
		if !ok {
			continue
		}
		if _, err := tx.s.nets.Get(tx, opened.Case.Fingerprint); err != nil {
			return fmt.Errorf("append %q: register workflow %s first: %w", e.Command, opened.Case.Workflow, tx.met(err))
		}
	}
	if e.Key != "" {
		if _, err := tx.answered(e.Key); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(tx.met(err), fmt.Errorf("append %q: key %q is taken: %w", e.Command, e.Key, store.ErrConflict))
		}
	}
	seq, err := tx.next()
	if err != nil {
		return err
	}
	// Another engine had a later transaction and committed first. A journal in which an entry comes before the one that it
	// follows could not be followed by position, so the commit is refused before it is sent; a transaction with a new number
	// does it.
	if seq <= root.LastSeq {
		tx.late = append(tx.late, t.Root)
	}
	e.Seq, e.Prev, e.Root = seq, root.LastSeq, t.Root
	start := len(tx.buf)
	tx.buf = state.AppendChanges(tx.buf, e.Changes, t)
	tx.appended = append(tx.appended, tables.Command{Entry: e, Dirty: t.End(e.Seq), Start: start, End: len(tx.buf)})
	tx.note(t, &tx.appended[len(tx.appended)-1].Dirty)
	return nil
}

// mustBeText refuses what a text of PostgreSQL cannot hold. What is kept as JSON has no such byte.
//
// It is found now: as an error of the commit it would be that of all commands of the batch.
func mustBeText(e *store.Entry) error {
	for what, text := range map[string]string{"command": e.Command, "actor": e.By, "key": e.Key} {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("append %q: the %s %q holds a NUL, which no text in a database may", e.Command, what, text)
		}
	}
	return nil
}

// DB implements [store.Tx].
func (tx *transaction) DB() domain.DB {
	if tx.usable() != nil {
		return sqlkit.DeadDB()
	}
	tx.gave = true
	if tx.user == nil {
		tx.user = sqlkit.NewUserDB(userConn{tx.w.raw}, tx, domain.Postgres)
	}
	return tx.user
}

// end makes the transaction unusable.
func (tx *transaction) end() {
	tx.w.mu.Lock()
	tx.ended = true
	tx.w.mu.Unlock()
	if tx.user != nil {
		tx.user.End()
	}
}

// rollback ends the server's transaction. One that was lost with its connection is undone by the server.
func (tx *transaction) rollback() {
	tx.parts.wait()
	if !tx.begun || tx.w.gone() {
		return
	}
	tx.begun = false
	if err := tx.w.exec(context.Background(), "ROLLBACK"); err != nil {
		tx.s.log.Error("a transaction could not be rolled back; the connection is closed, which does it", "database", tx.s.db.name,
			"error", err)
		// A connection in an unknown state is not used again: what the next update does could be part of this transaction.
		_ = tx.w.cut() // the next update reconnects
	}
}
