package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// transaction implements [store.Tx]. Entries that the engine appends stay in memory until the commit. The server's
// transaction begins with the user's SQL, if there is any.
//
//	Update
//	  f: Load, Append, ...     reads in transactions of one statement each, or in the server's transaction if it has begun
//	  position                 BEGIN and the transaction id, in one round trip, at the first Append; or begun ahead
//	  DB                       BEGIN at the first statement of the user's SQL
//	  commit                   one round trip
//
// Reads before BEGIN do not share a snapshot. That is safe, since the commit checks each tree that it depends on: if
// another engine has committed in between, the transaction is stale, and the batch runs again.
type transaction struct {
	serverTransaction
	seq      int64 // number of entries
	appended tables.Appended
	replies  []reply
	settings []store.Setting // to be written by the commit
	buf      []byte          // the encoded changes of all appended entries

	expected map[workitem.CaseID]int64 // ends of the journals of the trees that the commit depends on
	offered  map[workitem.JobID]bool
	unused   map[string]bool   // idempotency keys that are not in the database
	notifies bool              // its commit notifies the other engines of its root cases
	late     []workitem.CaseID // root cases that another engine changed after this transaction got its id

	marks    []mark // of the appended entries
	endings  int    // number of entries of ended trees that were not sent
	parts    parts
	deferred bool                         // the rows are left to the window
	counts   *tally                       // of the queued rows
	revs     map[workitem.CaseID]revision // of the newest queued entries
}

// A reply is written to the row of its request, from which the process that left the request takes it.
type reply struct {
	id     int64
	answer store.Answer
}

// readable returns the reason if the transaction cannot read the tables, which have everything that is committed when it returns
// nil. The connection is free then.
func (tx *transaction) readable() error {
	if err := tx.reachable(); err != nil {
		return err
	}
	return tx.settled()
}

// reachable is readable for what is not in the tables of cases.
func (tx *transaction) reachable() error {
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

// Fingerprints implements [tables.Source].
func (tx *transaction) Fingerprints(ids []workitem.CaseID, f func(workitem.CaseID, string)) error {
	if err := errors.Join(tx.landed(), tx.settled()); err != nil {
		return err
	}
	return tx.w.Fingerprints(ids, f)
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
		// An entry is decoded with the net of its case. Without its definition in the database it could not be read
		// again.
		if _, err := tx.s.nets.Get(tx, opened.Case.Fingerprint); err != nil {
			return fmt.Errorf("append %q: register workflow %s first: %w", e.Command, opened.Case.Workflow, tx.met(err))
		}
	}
	// A key is that of one entry for good. The answer to a repeated command would otherwise depend on which entry is
	// found.
	if e.Key != "" {
		if _, err := tx.answered(e.Key); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(tx.met(err), fmt.Errorf("append %q: key %q is taken: %w", e.Command, e.Key, store.ErrConflict))
		}
	}
	seq, err := tx.next()
	if err != nil {
		return err
	}
	// Another engine had a later transaction id and committed first. Readers that follow the journal by position would
	// see this entry before the one that it follows, so the commit is refused before it is sent; a transaction with a
	// new id succeeds.
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

// mustBeText refuses text that PostgreSQL cannot store: a zero byte. JSON values never have one.
//
// It is checked here, since an error of the commit would concern all commands of the batch.
func mustBeText(e *store.Entry) error {
	for what, text := range map[string]string{"command": e.Command, "actor": e.By, "key": e.Key} {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("append %q: the %s %q holds a NUL, which no text in a database may", e.Command, what, text)
		}
	}
	return nil
}

// rollback ends the server's transaction, once it has executed what was sent of the commit.
func (tx *transaction) rollback() {
	tx.parts.wait()
	tx.serverTransaction.rollback()
}
