package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// transaction implements [store.Tx]. What the engine appends stays in memory until the commit, so that undoing one
// command of many costs nothing as long as no SQL of the user's was run.
type transaction struct {
	s        *Store
	seq      int64
	appended []appended
	replies  []reply
	buf      []byte // the events of all appended entries, one after the other; the store's, so that it is made once

	user *userDB // of the running savepoint function, or of the whole transaction; nil until DB is called

	// Guarded by the connection's lock, since the user's SQL looks at them.
	depth  int   // how many savepoint functions are running
	saved  int   // how many of them have a savepoint in the database
	broken error // why the transaction can only be rolled back
	over   bool
}

type appended struct {
	entry      *store.Entry
	dirty      store.Dirty
	start, end int // of its events in buf
}

type reply struct {
	id     int64
	answer store.Answer
}

var errOver = errors.New("the transaction is over: use it only within the function that it was given to")

func (tx *transaction) usable() error {
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	return tx.usableLocked()
}

func (tx *transaction) usableLocked() error {
	if tx.over {
		return errOver
	}
	return tx.broken
}

// Load implements [store.Tx]. What is newer than the tables is taken from memory.
func (tx *transaction) Load(_ context.Context, root workitem.CaseID) (*store.Tree, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if tx.gone(root) {
		return nil, removed(root)
	}
	t, err := loadTree(tx.s.w, tx.s.nets, root, tx.newer)
	return t, explain(tx.s.path, err)
}

// newer finds a case that the tables do not show as it is now.
func (tx *transaction) newer(id workitem.CaseID) *store.Case {
	for i := len(tx.appended) - 1; i >= 0; i-- {
		for _, c := range tx.appended[i].dirty.Cases {
			if c.ID == id {
				return c
			}
		}
	}
	return tx.s.window.cases[id]
}

// newerItem is like newer for an item.
func (tx *transaction) newerItem(id workitem.ID) *workitem.Item {
	for i := len(tx.appended) - 1; i >= 0; i-- {
		for _, it := range tx.appended[i].dirty.Items {
			if it.ID == id {
				return it
			}
		}
	}
	return tx.s.window.items[id]
}

// newerJob is like newer for a job.
func (tx *transaction) newerJob(id workitem.JobID) *store.Job {
	for i := len(tx.appended) - 1; i >= 0; i-- {
		for _, j := range tx.appended[i].dirty.Jobs {
			if j.ID == id {
				return j
			}
		}
	}
	return tx.s.window.jobs[id]
}

// Root implements [store.Tx].
func (tx *transaction) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) {
	if err := tx.usable(); err != nil {
		return workitem.CaseID{}, err
	}
	root, err := tx.findRoot(id)
	if err == nil && tx.gone(root) {
		return workitem.CaseID{}, removed(root)
	}
	return root, err
}

func (tx *transaction) findRoot(id [16]byte) (workitem.CaseID, error) {
	if c := tx.newer(id); c != nil {
		return c.Root, nil
	}
	if it := tx.newerItem(id); it != nil {
		if c := tx.newer(it.Case); c != nil {
			return c.Root, nil
		}
		id = it.Case
	}
	if j := tx.newerJob(id); j != nil {
		return j.Root, nil
	}
	return findRoot(tx.s.w, id)
}

// Item implements [store.Tx].
func (tx *transaction) Item(_ context.Context, id workitem.ID) (*store.ItemRow, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	row, err := tx.findItem(id)
	if err == nil && tx.gone(row.Root) {
		return nil, removed(row.Root)
	}
	return row, err
}

func (tx *transaction) findItem(id workitem.ID) (*store.ItemRow, error) {
	it := tx.newerItem(id)
	if it == nil {
		return findItem(tx.s.w, id)
	}
	row := &store.ItemRow{Item: it}
	c := tx.newer(it.Case)
	if c == nil {
		var err error
		if c, err = loadCase(tx.s.w, tx.s.nets, it.Case); err != nil {
			return nil, err
		}
	}
	row.Root, row.Workflow = c.Root, c.Workflow
	return row, nil
}

// Steps implements [store.Tx]. Ids rise with time, so newer values fall into their places.
func (tx *transaction) Steps(_ context.Context, owner [16]byte) ([]*workitem.Step, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	all, err := ownedSteps(tx.s.w, owner)
	if err != nil {
		return nil, err
	}
	put := func(s *workitem.Step) {
		i, known := slices.BinarySearchFunc(all, s, func(a, b *workitem.Step) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		if known {
			all[i] = s
		} else {
			all = slices.Insert(all, i, s)
		}
	}
	for _, id := range tx.s.window.owned[owner] {
		put(tx.s.window.steps[id])
	}
	for i := range tx.appended {
		for _, s := range tx.appended[i].dirty.Steps {
			if s.Owner() == owner {
				put(s)
			}
		}
	}
	return all, nil
}

// Append implements [store.Tx].
func (tx *transaction) Append(_ context.Context, e *store.Entry, t *store.Tree) error {
	if err := tx.usable(); err != nil {
		return err
	}
	root := t.Case(t.Root)
	if root == nil {
		return fmt.Errorf("append %q: the tree of case %s is empty", e.Command, t.Root)
	}
	for _, event := range e.Events {
		opened, ok := event.(*store.CaseOpened)
		if !ok {
			continue
		}
		if _, err := tx.s.nets.get(tx.s.w, opened.Case.Fingerprint); err != nil {
			return fmt.Errorf("append %q: register workflow %s first: %w", e.Command, opened.Case.Workflow, err)
		}
	}
	if e.Key != "" {
		if _, err := tx.answered(e.Key); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(err, fmt.Errorf("append %q: key %q is taken: %w", e.Command, e.Key, store.ErrConflict))
		}
	}
	tx.seq++
	e.Seq, e.Prev, e.Root = tx.seq, root.LastSeq, t.Root
	start := len(tx.buf)
	tx.buf = store.AppendEvents(tx.buf, e.Events, t)
	tx.appended = append(tx.appended, appended{entry: e, dirty: t.End(e.Seq), start: start, end: len(tx.buf)})
	return nil
}

// Answered implements [store.Tx].
func (tx *transaction) Answered(_ context.Context, key string) (*store.Entry, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	return tx.answered(key)
}

func (tx *transaction) answered(key string) (*store.Entry, error) {
	for i := range tx.appended {
		if e := tx.appended[i].entry; e.Key == key && !tx.gone(e.Root) {
			return e, nil
		}
	}
	var seq int64
	err := tx.s.w.each("SELECT k.seq, j.root FROM idempotency_keys k JOIN journal j ON j.seq = k.seq WHERE k.key = ?",
		args(key), func(r *row) error {
			at, root := r.number(), id[workitem.CaseID](r)
			if !tx.gone(root) {
				seq = at
			}
			return r.err
		})
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		return nil, fmt.Errorf("no command with key %q: %w", key, store.ErrNotFound)
	}
	return findEntry(tx.s.w, tx.s.nets, seq, tx.newer)
}

// Savepoint implements [store.Tx].
func (tx *transaction) Savepoint(_ context.Context, f func() error) (err error) {
	if err := tx.usable(); err != nil {
		return err
	}
	seq, entries, replies, buf := tx.seq, len(tx.appended), len(tx.replies), len(tx.buf)
	level, user := tx.enter()
	done := false
	defer func() { // also when f panics
		keep := done && err == nil
		if !keep {
			tx.seq, tx.replies, tx.buf = seq, tx.replies[:replies], tx.buf[:buf]
			clear(tx.appended[entries:])
			tx.appended = tx.appended[:entries]
		}
		err = errors.Join(err, tx.leave(level, user, keep))
	}()
	err = f()
	done = true
	return err
}

// enter begins a savepoint function. Handles that DB gives within it end with it, so that a callback that was left
// behind cannot reach into the next command.
func (tx *transaction) enter() (level int, user *userDB) {
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	// The savepoints of the functions around this one may still be to be made: they are not this one's to release.
	level, user, tx.user = tx.depth, tx.user, nil
	tx.depth++
	return level, user
}

// leave ends a savepoint function, and keeps or undoes what it did to the database.
func (tx *transaction) leave(level int, user *userDB, keep bool) error {
	if tx.user != nil {
		tx.user.end()
	}
	tx.s.w.mu.Lock()
	defer tx.s.w.mu.Unlock()
	tx.user = user
	tx.depth--
	for tx.saved > level && tx.broken == nil {
		if user != nil {
			user.closeRowsLocked() // a query that is under way would stand in the way
		}
		if err := tx.leaveSavepoint(keep); err != nil {
			return tx.failLocked(err)
		}
		tx.saved--
	}
	if keep {
		return tx.broken
	}
	return nil
}

func (tx *transaction) leaveSavepoint(keep bool) error {
	if !keep {
		if _, err := tx.s.w.changeLocked("ROLLBACK TO tasq"); err != nil {
			return err
		}
	}
	_, err := tx.s.w.changeLocked("RELEASE tasq")
	return err
}

// failLocked remembers that the transaction can only be rolled back.
func (tx *transaction) failLocked(err error) error {
	if tx.broken == nil {
		tx.broken = fmt.Errorf("the whole transaction was undone: %w", explain(tx.s.path, err))
	}
	return tx.broken
}

// DB implements [store.Tx].
func (tx *transaction) DB() domain.DB {
	if tx.usable() != nil {
		return deadDB()
	}
	if tx.user == nil {
		tx.user = newUserDB(tx.s.w, tx)
	}
	return tx.user
}

// before implements scope: it is called, with the lock held, before each statement of the user's. It makes the
// savepoints that the running Savepoint calls stand for: without the user's SQL there is nothing in the database to
// undo.
func (tx *transaction) before() error {
	if err := tx.usableLocked(); err != nil {
		return err
	}
	for tx.saved < tx.depth {
		if _, err := tx.s.w.changeLocked("SAVEPOINT tasq"); err != nil {
			return tx.failLocked(err)
		}
		tx.saved++
	}
	return nil
}

// after implements scope: it is called with the error of each statement of the user's. Some errors undo the transaction
// and not only the statement, and what followed would then be committed one by one.
func (tx *transaction) after(err error) error {
	if err != nil && (undoesAll(err) || !tx.s.w.inTransactionLocked()) {
		return tx.failLocked(err)
	}
	return err
}

// end makes the transaction unusable.
func (tx *transaction) end() {
	tx.s.w.mu.Lock()
	tx.over = true
	tx.s.w.mu.Unlock()
	if tx.user != nil {
		tx.user.end()
	}
}

// textIn is bytes as a text, without a copy: it must be gone before the bytes change. The events of a command are most of
// what it writes, and the driver copies them once more.
func textIn(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// write puts what was appended and replied into the database.
func (tx *transaction) write() error {
	if err := tx.usable(); err != nil {
		return err
	}
	w := tx.s.w
	for i := range tx.appended {
		a := &tx.appended[i]
		e := a.entry
		if err := w.run("INSERT INTO journal (seq, prev, root, at, command, actor, key, answer, events) "+
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", e.Seq, e.Prev, textOf(e.Root), store.Micros(e.At), e.Command, e.By,
			nullable(e.Key), jsonOf(e.Answer), textIn(tx.buf[a.start:a.end])); err != nil {
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
	return tx.writeReplies()
}
