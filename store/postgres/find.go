package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Load implements [store.Tx]. Cases that this transaction has appended are taken from memory.
// The rows are read outside of a snapshot if the transaction has not begun: see loadTree for why this is safe.
func (tx *transaction) Load(_ context.Context, root workitem.CaseID) (*state.Tree, error) {
	if err := tx.reachable(); err != nil {
		return nil, err
	}
	if tx.s.window.has(root) {
		if err := tx.settled(); err != nil {
			return nil, err
		}
	}
	if tx.appended.Removed(root) {
		return nil, removed(root)
	}
	t, err := loadTree(tx.w, tx.s.nets, root, tx.appended.Case)
	return t, tx.met(err)
}

func removed(root workitem.CaseID) error {
	return fmt.Errorf("case %s was removed: %w", root, store.ErrNotFound)
}

// Root implements [store.Tx].
func (tx *transaction) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) {
	if err := tx.usable(); err != nil {
		return workitem.CaseID{}, err
	}
	root, err := tx.findRoot(id)
	if err == nil && tx.appended.Removed(root) {
		return workitem.CaseID{}, removed(root)
	}
	return root, tx.met(err)
}

// Memory first: cases that this transaction has opened are in no table yet.
func (tx *transaction) findRoot(id [16]byte) (workitem.CaseID, error) {
	if c := tx.appended.Case(id); c != nil {
		return c.Root, nil
	}
	// Nothing is asked of the server for what this transaction has opened: the connection may still be busy with a
	// part of it (see landed).
	if it := tx.appended.Item(id); it != nil { // its case changed with it
		return tx.appended.Case(it.Case).Root, nil
	}
	if j := tx.appended.Job(id); j != nil {
		return j.Root, nil
	}
	if err := errors.Join(tx.landed(), tx.settled()); err != nil {
		return workitem.CaseID{}, err
	}
	return findRoot(tx.w, id)
}

// Item implements [store.Tx].
func (tx *transaction) Item(_ context.Context, id workitem.ID) (*store.ItemRow, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	row, err := tx.findItem(id)
	if err == nil && tx.appended.Removed(row.Root) {
		return nil, removed(row.Root)
	}
	return row, tx.met(err)
}

func (tx *transaction) findItem(id workitem.ID) (*store.ItemRow, error) {
	it := tx.appended.Item(id)
	if it == nil {
		if err := errors.Join(tx.landed(), tx.settled()); err != nil {
			return nil, err
		}
		return findItem(tx.w, id)
	}
	c := tx.appended.Case(it.Case)
	return &store.ItemRow{Item: it, Root: c.Root, Workflow: c.Workflow}, nil
}

// Steps implements [store.Tx].
func (tx *transaction) Steps(_ context.Context, owner [16]byte) ([]*workitem.Step, error) {
	if err := tx.readable(); err != nil {
		return nil, err
	}
	all, err := ownedSteps(tx.w, owner)
	if err != nil {
		return nil, tx.met(err)
	}
	// The rows are those from before the transaction, whose own steps replace them.
	return tx.appended.Steps(all, owner), nil
}

// KeyHolders implements [store.Tx]. The lock makes another engine's transaction for the same key wait, so that it sees
// the result of this one. Two transactions that lock several keys in different orders deadlock; the server ends one of
// them, which restarts.
func (tx *transaction) KeyHolders(_ context.Context, workflow, key string) ([]workitem.CaseID, error) {
	if err := tx.readable(); err != nil {
		return nil, err
	}
	if err := tx.lockKey(workflow, key); err != nil {
		return nil, err
	}
	w := tables.KeyHolders(tables.Dialect{Numbered: true}, workflow, key)
	w.Plain("key_unique")
	ids := tx.appended.Keyed(key)
	err := tx.w.each("SELECT id FROM @.cases"+w.Where(), w.Args, func(r *tables.Row) error {
		ids = append(ids, tables.ID[workitem.CaseID](r))
		return r.Err
	})
	// A row may be that of a case which this transaction has ended; its newer value decides.
	holders := tables.HoldersOf(workflow, key, ids, tx.appended.Case)
	return slices.DeleteFunc(holders, tx.appended.Removed), tx.met(err)
}

// lockKey makes transactions of other engines with the same key wait until this one has ended.
//
// The lock is advisory, since a new key has no row that could be locked:
//
//	engine A                                    engine B
//	run with key "C-4711": lock, no holder
//	                                            run with key "C-4711": waits
//	INSERT the case; COMMIT
//	                                            a holder: the policy of its command decides
//
// A single engine runs its commands one after the other, and needs no lock. The lock ends with the transaction, so a
// crash leaves none.
func (tx *transaction) lockKey(workflow, key string) error {
	if !tx.s.shared {
		return nil
	}
	if err := tx.begin(); err != nil {
		return err
	}
	_, _, err := tx.w.number("SELECT 1 FROM pg_advisory_xact_lock(hashtextextended($1, 0))",
		"tasq key "+tx.s.db.set.schema+"\n"+workflow+"\n"+key)
	return tx.met(err)
}

// KeyStarts implements [store.Tx].
func (tx *transaction) KeyStarts(_ context.Context, workflow, key string, after time.Time) ([]store.KeyStart, error) {
	if err := tx.readable(); err != nil {
		return nil, err
	}
	// Locked as for the holders: two engines that count at the same time would each miss the start of the other, and
	// admit one too many.
	if err := tx.lockKey(workflow, key); err != nil {
		return nil, err
	}
	w := tables.KeyStarts(tables.Dialect{Numbered: true, ID: "?::text::uuid"}, workflow, key, after)
	var all []store.KeyStart
	err := tx.w.each("SELECT id, created FROM @.cases"+w.Where(), w.Args, func(r *tables.Row) error {
		all = append(all, store.KeyStart{Case: tables.ID[workitem.CaseID](r), At: r.Time()})
		return r.Err
	})
	all = tables.MergeStarts(all, tx.appended.Starts(), workflow, key, after)
	return slices.DeleteFunc(all, func(s store.KeyStart) bool { return tx.appended.Removed(s.Case) }), tx.met(err)
}

// Successors implements [store.Tx]. The lock is that of a key without a workflow, which no business key has.
func (tx *transaction) Successors(_ context.Context, id workitem.CaseID) (all []workitem.CaseID, err error) {
	if err := tx.readable(); err != nil {
		return nil, err
	}
	if err := tx.lockKey("", id.String()); err != nil {
		return nil, err
	}
	err = tx.w.each("SELECT id FROM @.cases WHERE predecessor = $1", []any{uuid(id)}, func(r *tables.Row) error {
		all = append(all, tables.ID[workitem.CaseID](r))
		return r.Err
	})
	all = tables.MergeSuccessors(all, tx.appended.Starts(), id)
	return slices.DeleteFunc(all, tx.appended.Removed), tx.met(err)
}

// Answered implements [store.Tx].
func (tx *transaction) Answered(_ context.Context, key string) (*store.Entry, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	e, err := tx.answered(key)
	return e, tx.met(err)
}

// The places where a key may be, from the nearest: this transaction, what it knows to be unused, the table.
func (tx *transaction) answered(key string) (*store.Entry, error) {
	for i := range tx.appended {
		if e := tx.appended[i].Entry; e.Key == key && !tx.appended.Removed(e.Root) {
			return e, nil
		}
	}
	// PrefetchKeys has looked it up with the other keys of the batch, in one round trip.
	if tx.unused[key] {
		return nil, unknownKey(key)
	}
	if err := tx.landed(); err != nil {
		return nil, err
	}
	// Most keys are used once. The cases of one that was used before are read, so the tables must have them.
	if tx.s.window.size() > 0 {
		if err := tx.PrefetchKeys(context.Background(), []string{key}); err != nil {
			return nil, err
		}
		if tx.unused[key] {
			return nil, unknownKey(key)
		}
		if err := tx.settled(); err != nil {
			return nil, err
		}
	}
	found, err := keyedEntries(tx.w, tx.s.nets, tx.appended.Case, math.MaxInt64, key)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		tx.isUnused(key)
	}
	if len(found) == 0 || tx.appended.Removed(found[0].Root) {
		return nil, unknownKey(key)
	}
	return found[0], nil
}

// isUnused notes that no entry in the database has a key. If another engine uses it meanwhile, the commit conflicts:
// see keepKeys.
func (tx *transaction) isUnused(key string) {
	if tx.unused == nil {
		tx.unused = make(map[string]bool)
	}
	tx.unused[key] = true
}

// PrefetchKeys implements [store.SharedTx].
func (tx *transaction) PrefetchKeys(_ context.Context, keys []string) error {
	if err := tx.reachable(); err != nil {
		return err
	}
	hashes, used := make([][]byte, len(keys)), make([]bool, len(keys))
	for i, key := range keys {
		hashes[i] = keyHash(key)
	}
	err := tx.w.each(usedKeys, []any{hashes}, func(r *tables.Row) error {
		// What is found is not kept: it is read again, with its entry, by the command with that key. A key is in use
		// only if a caller repeats its command.
		used[r.Number()-1] = true
		return r.Err
	})
	if err != nil {
		return tx.met(err)
	}
	for i, key := range keys {
		if !used[i] {
			tx.isUnused(key)
		}
	}
	return nil
}

// usedKeys returns which of the given keys are in the database, by their numbers from 1.
const usedKeys = "SELECT u.n FROM unnest($1::bytea[]) WITH ORDINALITY AS u(key, n) JOIN @.idempotency_keys k ON k.key = u.key"

// keyedEntries finds the entry with an idempotency key, by the primary keys of both tables.
func keyedEntries(c *conn, nets *tables.Nets, newer func(workitem.CaseID) *state.Case, until int64, key string) ([]*store.Entry, error) {
	return readEntries(c, nets, allEntries+"WHERE (j.root, j.seq) IN (SELECT root, seq FROM @.idempotency_keys WHERE key = $1) AND j.seq <= $2", newer,
		keyHash(key), until)
}

func unknownKey(key string) error {
	return fmt.Errorf("no command with key %q: %w", key, store.ErrNotFound)
}

// entryColumns are the columns of an entry, with the position of the previous entry of its tree.
//
// The previous entry has the previous revision, so it is found by the primary key. Storing its position would be
// another column to write with each entry.
const entryColumns = "SELECT j.seq, COALESCE((SELECT p.seq FROM @.journal p WHERE p.root = j.root AND p.rev = j.rev - 1), 0), " +
	"j.root, j.at, j.command, j.actor, j.key, j.answer, j.events FROM "

// allEntries is the table of entries, for a condition that finds some of them by a key.
const allEntries = "@.journal j "

// readEntries reads the entries that a statement selects; from is what follows its FROM.
func readEntries(
	c *conn, nets *tables.Nets, from string, newer func(workitem.CaseID) *state.Case, args ...any,
) ([]*store.Entry, error) {
	var all []*store.Entry
	var roots []workitem.CaseID
	var events []string
	err := c.each(entryColumns+from, args, func(r *tables.Row) error {
		e := &store.Entry{Seq: r.Number(), Prev: r.Number(), Root: tables.ID[workitem.CaseID](r), At: r.Time(), Command: r.Text(),
			By: r.Text(), Key: r.Text(), Answer: r.JSON()}
		all, roots, events = append(all, e), append(roots, e.Root), append(events, r.Text())
		return r.Err
	})
	if err != nil {
		return nil, err
	}
	names := tables.NewEntryNets(c, nets, newer)
	names.Expect(roots)
	for i, e := range all {
		if e.Changes, err = names.Decode(e.Root, events[i]); err != nil {
			return nil, fmt.Errorf("journal entry %d: %w", e.Seq, err)
		}
		events[i] = "" // the text of a page may be larger than what is decoded of it
	}
	return all, nil
}
