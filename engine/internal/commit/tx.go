package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Tx is the transaction of one request: everything that is done through it is committed together, or not at all. Its
// methods are for the writer's goroutine; user code enters it through [Tx.Command] or [Tx.Enter].
type Tx struct {
	w       *Writer
	s       store.Tx
	ctx     context.Context
	now     time.Time
	writes  writes
	first   TreeWrite // the memory of the first write: most transactions have only one
	control kernel.Control
	users   bool // user code has control, and gives it back to call the engine
	depth   int  // of nested callbacks

	shared store.SharedTx    // nil if no other engine has the store open
	locks  bool              // cases are locked when they are opened
	opened []workitem.CaseID // the root cases opened so far, if the store is shared

	ahead   map[workitem.CaseID]*state.Tree // trees that were read before the transaction, see ReadAhead
	offered []workitem.JobID                // jobs offered to all engines

	savepoints []savepoint // the open ones, the outermost first
	deferred   bool        // completion handlers are called by jobs
	handled    bool        // a completion handler was called
	ran        bool        // the function of the request has succeeded

	size Size // of what was appended, if it is measured
}

// Store returns the transaction of the store.
func (tx *Tx) Store() store.Tx { return tx.s }

// Context returns the context of the request, which is never canceled, or that of the current callback.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Now returns the time of the transaction.
func (tx *Tx) Now() time.Time { return tx.now }

// Deferred reports whether jobs have to call the completion handlers, since one of them has aborted the transaction of
// this request before. See [ErrDefer].
func (tx *Tx) Deferred() bool { return tx.deferred }

// Depth returns the number of nested callbacks.
func (tx *Tx) Depth() int { return tx.depth }

// Command runs a command for user code: it takes control, and rolls back the command alone if it fails, since the
// user code may continue.
func (tx *Tx) Command(f func() error) error {
	leave, err := tx.Enter()
	if err != nil {
		return err
	}
	defer leave()
	if !tx.users {
		return f()
	}
	return tx.Savepoint(f)
}

// Enter takes control from user code; leave returns it. It is an error after the end of the transaction.
// A callback that has overrun its time may call a method at any moment, from its own goroutine. It can do so
// only while the callback is the one that has control.
func (tx *Tx) Enter() (leave func(), err error) {
	switch {
	case tx.control.Ended():
		return nil, errTxEnded
	case !tx.users:
		return func() {}, nil
	}
	if err := tx.control.Take(); err != nil {
		return nil, errTxEnded
	}
	return tx.control.Give, nil
}

var errTxEnded = fmt.Errorf("%w: use a Tx only within the function that it was given to", kernel.ErrAbandoned)

// Callback passes control to user code, which can call the methods of the Tx.
func (tx *Tx) Callback(f func(ctx context.Context) error) error {
	ctx, users := tx.ctx, tx.users
	tx.users = true
	tx.depth++
	defer func() { tx.depth-- }()
	tx.control.Give()
	err := tx.w.runner.call(ctx, func(ctx context.Context) error {
		tx.ctx = ctx
		return f(ctx)
	})
	// The callback still runs. Control stays revoked, and tx.users stays set, since the transaction is
	// only rolled back from here on.
	if errors.Is(err, kernel.ErrAbandoned) {
		tx.control.Revoke()
		return err
	}
	tx.ctx, tx.users = ctx, users
	return errors.Join(err, tx.control.Take())
}

// DB runs the user's own SQL in the transaction. After its end every statement is an error.
func (tx *Tx) DB() domain.DB {
	leave, err := tx.Enter()
	if err != nil {
		return closedDB()
	}
	defer leave()
	return tx.s.DB()
}

// Case returns the state of a case as the transaction sees it.
func (tx *Tx) Case(id workitem.CaseID) (*state.Case, error) {
	leave, err := tx.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	u, err := tx.OpenCase(id)
	if err != nil {
		return nil, err
	}
	c := u.Tree.Case(id)
	if c == nil {
		return nil, fmt.Errorf("case %s: %w", printable.ID(id), store.ErrNotFound)
	}
	return c, nil
}

// On runs a command on a tree, and stores its result with its idempotency key.
func (tx *Tx) On(u *TreeWrite, o Operation, result workflow.Result, f func(*kernel.Machine) error) (workflow.Result, error) {
	err := tx.mark(u, o, result)
	if err == nil {
		err = tx.Run(u, o.Actor, f)
	}
	if err != nil {
		return workflow.Result{}, err
	}
	return result, nil
}

// Internal runs a command of the engine itself on a tree.
func (tx *Tx) Internal(u *TreeWrite, command string, f func(*kernel.Machine) error) error {
	_, err := tx.On(u, Operation{Command: command}, workflow.Result{}, f)
	return err
}

// Run runs a further part of the current command on a tree.
func (tx *Tx) Run(u *TreeWrite, actor string, f func(*kernel.Machine) error) error {
	tx.touch(u)
	m := kernel.Reuse(tx.w.machine, tx.ctx, host{tx}, u.Tree, tx.now, actor)
	tx.w.machine = nil // a command within this one has its own
	defer tx.w.keepMachine(m)
	err := f(m)
	if u.entry.Changes == nil {
		u.entry.Changes = make([]state.Change, 0, max(8, len(m.Changes()))) // with room for the claim of a job that was opened
	}
	u.entry.Changes = append(u.entry.Changes, m.Changes()...)
	if err == nil && len(m.GivenUp()) > 0 {
		err = tx.w.o.GivenUp(tx, u, m.GivenUp())
	}
	if err != nil || !u.Tree.Ended() || !endsRoot(u.Tree.Root, m.Changes()) { // both, since a fork can copy an end and the resume after it
		return err
	}
	return tx.w.o.RootEnded(tx, u)
}

// endsRoot reports whether changes end the root case.
func endsRoot(root workitem.CaseID, changes []state.Change) bool {
	for _, e := range changes {
		if end, ok := e.(*state.CaseEnded); ok && end.Case == root {
			return true
		}
	}
	return false
}

// KeyHolders lists the other root cases of the same workflow that hold the business key of a case, oldest first,
// including the changes of the request so far: cases that it has started, failed or removed.
// What the request has changed is not in the store yet, so its own cases are judged by their trees, and the store's
// list counts only for the others. For example, a request that fails case A and starts B with the same key:
//
//	trees of the request    A failed: holds no key    B: the case that asks
//	the store               A
//	holders                 none
func (tx *Tx) KeyHolders(c *state.Case) (all []workitem.CaseID, err error) {
	for other := range tx.writes.withKey(keyOf(c)) {
		if other.ID != c.ID && other.HoldsKey() {
			all = append(all, other.ID)
		}
	}
	holders, err := tx.s.KeyHolders(tx.ctx, c.Workflow, c.Key)
	for _, id := range holders {
		if id != c.ID && tx.writes.of(id) == nil {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b workitem.CaseID) int { return bytes.Compare(a[:], b[:]) })
	return all, err
}

// KeyStarts lists the other root cases of the workflow of a case that have its business key and were created after a
// time, oldest first, with what the request has done so far.
// The trees of the request count instead of what the store has of them, as for KeyHolders.
func (tx *Tx) KeyStarts(c *state.Case, after time.Time) (all []store.KeyStart, err error) {
	for other := range tx.writes.withKey(keyOf(c)) {
		if other.ID != c.ID && other.Created.After(after) {
			all = append(all, store.KeyStart{Case: other.ID, At: other.Created})
		}
	}
	stored, err := tx.s.KeyStarts(tx.ctx, c.Workflow, c.Key, after)
	for _, s := range stored {
		if s.Case != c.ID && tx.writes.of(s.Case) == nil {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, store.KeyStart.Compare)
	return all, err
}

// Successors lists the root cases that were started as restarts or forks of a case, oldest first, with what the request has
// done so far. The trees of the request count instead of what the store has of them, as for KeyHolders.
func (tx *Tx) Successors(id workitem.CaseID) (all []workitem.CaseID, err error) {
	for _, u := range tx.writes.list {
		if c := u.Tree.Case(u.Tree.Root); c != nil && c.Predecessor == id {
			all = append(all, c.ID)
		}
	}
	stored, err := tx.s.Successors(tx.ctx, id)
	for _, other := range stored {
		if tx.writes.of(other) == nil {
			all = append(all, other)
		}
	}
	slices.SortFunc(all, func(a, b workitem.CaseID) int { return bytes.Compare(a[:], b[:]) })
	return all, err
}

// Open returns the part of the transaction that concerns a root case, and begins it if necessary.
func (tx *Tx) Open(root workitem.CaseID) (*TreeWrite, error) {
	if u := tx.writes.of(root); u != nil {
		return u, u.mustExist()
	}
	if err := tx.lock(root); err != nil {
		return nil, err
	}
	tree, err := tx.w.trees.load(tx, root)
	if err != nil {
		return nil, err
	}
	// Also if the request only reads the tree: what it decides depends on it.
	tx.expect(tree)
	return tx.Create(tree), nil
}

// OpenCase is like Open, with the id of a root case or one of its descendants. The error wraps [store.ErrNotFound] for
// the id of anything else, such as a work item, of which the store knows the root as well.
func (tx *Tx) OpenCase(id workitem.CaseID) (*TreeWrite, error) {
	if u := tx.writes.of(id); u != nil && u.Tree.Case(id) != nil {
		return u, u.mustExist()
	}
	for _, u := range tx.writes.list {
		if u.Tree.Case(id) != nil {
			return u, u.mustExist()
		}
	}
	root, err := tx.RootOfCase(id)
	if err != nil {
		return nil, err
	}
	u, err := tx.Open(root)
	if err == nil && u.Tree.Case(id) == nil {
		return nil, fmt.Errorf("case %s: %w", printable.ID(id), store.ErrNotFound)
	}
	return u, err
}

// RootOfItem finds the root case of an item.
// The index of items in memory comes first, as most commands name items of cases that were used a moment ago.
func (tx *Tx) RootOfItem(item workitem.ID) (workitem.CaseID, error) {
	if root, ok := tx.w.trees.index.get(item); ok {
		return root, nil
	}
	for _, u := range tx.writes.list {
		if _, it := u.Tree.Item(item); it != nil {
			return u.Tree.Root, nil
		}
	}
	return tx.s.Root(tx.ctx, item)
}

// RootOfCase finds the root case of a case. The error names the case.
func (tx *Tx) RootOfCase(id workitem.CaseID) (workitem.CaseID, error) {
	if tx.w.trees.has(id) {
		return id, nil
	}
	return store.RootOfCase(tx.ctx, tx.s, id)
}

// Changed lists the trees that the transaction has changed, and what happened to each so far, in order.
func (tx *Tx) Changed() iter.Seq2[*TreeWrite, []state.Change] {
	return func(yield func(*TreeWrite, []state.Change) bool) {
		for _, u := range tx.writes.list {
			if changes := u.changes(); len(changes) > 0 && !yield(u, changes) {
				return
			}
		}
	}
}

// CacheSteps starts to cache the steps of a job of a tree of the transaction, beginning with those that the claim of
// the job has read. See stepCache.
// The caller has read them in this transaction, and does not pay for a copy if the tree is not kept in memory.
func (tx *Tx) CacheSteps(root workitem.CaseID, job workitem.JobID, steps []*workitem.Step) {
	if u := tx.writes.of(root); u != nil {
		tx.w.trees.cacheSteps(u, job, steps)
	}
}
