package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Tx is one transaction of the engine: everything that is done through it happens together, or not at all. Workflows
// and tasks take it in place of an [Engine].
type Tx struct {
	e      *Engine
	s      store.Tx
	ctx    context.Context
	now    time.Time
	writes []*treeWrite
	first  treeWrite // of the writes: most transactions have no other
	gate   kernel.Gate
	users  bool // the user's code has control, and comes back in through the gate

	savepoints []savepoint // that are under way, the outermost first
	late       bool        // completion handlers are told by jobs
	nesting    int         // how deep completion handlers have ended cases
}

// command runs a command for the user's code: it takes control, and undoes the command alone if it fails, since the
// code may go on all the same.
func (tx *Tx) command(f func() error) error {
	leave, err := tx.enter()
	if err != nil {
		return err
	}
	defer leave()
	if !tx.users {
		return f()
	}
	return tx.savepoint(f)
}

// enter takes control from the user's code; leave gives it back.
func (tx *Tx) enter() (leave func(), err error) {
	switch {
	case tx.gate.Over():
		return nil, errTxEnded
	case !tx.users:
		return func() {}, nil
	}
	if err := tx.gate.In(); err != nil {
		return nil, errTxEnded
	}
	return tx.gate.Out, nil
}

var errTxEnded = fmt.Errorf("%w: use a Tx only within the function that it was given to", kernel.ErrAbandoned)

// Update runs f in one transaction with whatever it does to cases and to the user's own tables, and returns when that
// is durable. It runs on the engine's writer, so f must not call the engine itself, only the Tx, and must be short. A
// command that fails is undone alone, so f may go on; if f returns an error, nothing of all this happened. An error that wraps
// [store.ErrUndone] says that SQL of f undid the transaction: f cannot go on then.
//
// f is called once at most. If the context ends before that, f is not called; once it is called, Update returns its outcome
// whether or not the context ends. So f may use variables of its caller.
func (e *Engine) Update(ctx context.Context, f func(*Tx) error) error {
	if f == nil {
		return errors.New("Update: there is no function to call: it is nil")
	}
	return e.submit(ctx, &request{once: true, run: func(tx *Tx) error {
		return tx.callback(func(context.Context) error { return f(tx) })
	}})
}

// DB runs the user's own SQL in the transaction. After its end every statement is an error.
func (tx *Tx) DB() domain.DB {
	leave, err := tx.enter()
	if err != nil {
		return closedDB()
	}
	defer leave()
	return tx.s.DB()
}

// Now is the time of the transaction.
func (tx *Tx) Now() time.Time { return tx.now }

// Case returns the state of a case as the transaction sees it.
func (tx *Tx) Case(_ context.Context, id workitem.CaseID) (*state.Case, error) {
	leave, err := tx.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	u, err := tx.openAny(id)
	if err != nil {
		return nil, err
	}
	c := u.tree.Case(id)
	if c == nil {
		return nil, fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	return c, nil
}

// internal runs a command of the engine itself on a tree.
func (tx *Tx) internal(u *treeWrite, command string, f func(*kernel.Machine) error) error {
	_, err := tx.on(u, operation{command: command}, workflow.Result{}, f)
	return err
}

// do runs one command on a tree.
func (tx *Tx) do(u *treeWrite, actor string, f func(*kernel.Machine) error) error {
	tx.touch(u)
	m := kernel.New(tx.ctx, host{tx}, u.tree, tx.now, actor)
	err := f(m)
	if u.entry.Changes == nil {
		u.entry.Changes = m.Changes()
	} else {
		u.entry.Changes = append(u.entry.Changes, m.Changes()...)
	}
	if err != nil {
		return err
	}
	return tx.complete(u, m.Changes())
}

// open finds or begins the part of the transaction that concerns a root case.
func (tx *Tx) open(root workitem.CaseID) (*treeWrite, error) {
	for _, u := range tx.writes {
		if u.tree.Root == root {
			return u, u.mustBeThere()
		}
	}
	tree, err := tx.e.load(tx, root)
	if err != nil {
		return nil, err
	}
	return tx.newWrite(tree), nil
}

func (tx *Tx) openAny(id workitem.CaseID) (*treeWrite, error) {
	for _, u := range tx.writes {
		if u.tree.Case(id) != nil {
			return u, u.mustBeThere()
		}
	}
	root, err := tx.rootOfCase(id)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", id, err)
	}
	return tx.open(root)
}

// root finds the root case of an item.
func (tx *Tx) root(item workitem.ID) (workitem.CaseID, error) {
	if root, ok := tx.e.index.get(item); ok {
		return root, nil
	}
	for _, u := range tx.writes {
		if _, it := u.tree.Item(item); it != nil {
			return u.tree.Root, nil
		}
	}
	return tx.s.Root(tx.ctx, item)
}

// rootOfCase finds the root case of a case.
func (tx *Tx) rootOfCase(id workitem.CaseID) (workitem.CaseID, error) {
	if tx.e.trees[id] != nil {
		return id, nil
	}
	return tx.s.Root(tx.ctx, id)
}

// host is what the kernel sees of a transaction.
type host struct{ tx *Tx }

func (h host) Definition(fingerprint string) *workflow.Definition {
	return h.tx.e.byPrint[fingerprint]
}

func (h host) Call(ctx context.Context, f func(context.Context) error) error {
	return h.tx.e.runner.call(ctx, f)
}
func (h host) Gate() *kernel.Gate                      { return &h.tx.gate }
func (h host) DB() domain.DB                           { return h.tx.s.DB() }
func (h host) NewID(now time.Time) workitem.ID         { return h.tx.e.ids.NewID(now) }
func (h host) NewCaseID(now time.Time) workitem.CaseID { return h.tx.e.ids.NewCaseID(now) }
func (h host) NewJobID(now time.Time) workitem.JobID   { return h.tx.e.ids.NewJobID(now) }
func (h host) NewStepID(now time.Time) workitem.StepID { return h.tx.e.ids.NewStepID(now) }
func (h host) NewMessageID(now time.Time) workitem.MessageID {
	return h.tx.e.ids.NewMessageID(now)
}
func (h host) Named(workflow string) *workflow.Definition { return h.tx.e.byName[workflow] }
func (h host) Steps(owner [16]byte) ([]*workitem.Step, error) {
	return h.tx.s.Steps(h.tx.ctx, owner)
}
func (h host) NewToken(root workitem.CaseID) (string, error) {
	return newToken(h.tx.e.cfg.Random, root)
}
