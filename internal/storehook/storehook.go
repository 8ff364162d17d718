// Package storehook opens stores that call hooks of a test when an engine begins and ends transactions, reads and
// appends: to count, to fail, to wait, or to kill the process. The optional interfaces of a store are hidden, except
// [store.Killer], and [store.Fleet] if requested.
package storehook

import (
	"context"
	"errors"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// Opener opens stores with hooks. A nil hook does nothing. The hooks of transactions are called one at a time, since an
// engine has one writer; those of View and Idle may be called concurrently.
type Opener struct {
	store.Opener

	Fleet bool // a store.Fleet stays one; Append and Tx have to be nil, which would hide store.SharedTx

	Opened func(s store.Store) error                    // the store is open; an error closes it
	Update func(run func() error) error                 // around each transaction that may write
	Tx     func(tx store.Tx) store.Tx                   // replaces the transaction that the engine gets
	Append func(e *store.Entry, tree *state.Tree) error // before each entry; its error is returned by Append
	Commit func() error                                 // before the commit; an error rolls back the transaction
	View   func(run func() error) error                 // around each view
	Idle   func(run func() error) error                 // around each call of Idle
}

// Open implements [store.Opener].
func (o *Opener) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	s, err := o.Opener.Open(ctx, opts)
	if err == nil && o.Opened != nil {
		err = o.Opened(s)
	}
	if err != nil {
		return nil, err
	}
	h := &hooked{s, o}
	if f, ok := s.(store.Fleet); ok && o.Fleet {
		return &hookedFleet{h, f}, nil
	}
	return h, nil
}

// hookedFleet is a store that several engines may open.
type hookedFleet struct {
	*hooked
	store.Fleet
}

type hooked struct {
	store.Store
	o *Opener
}

// Update implements [store.Store].
func (s *hooked) Update(ctx context.Context, f func(store.Tx) error) error {
	return around(s.o.Update, func() error {
		return s.Store.Update(ctx, func(tx store.Tx) error {
			if s.o.Append != nil {
				tx = &hookedTx{tx, s.o}
			}
			if s.o.Tx != nil {
				tx = s.o.Tx(tx)
			}
			err := f(tx)
			if err == nil && s.o.Commit != nil {
				err = s.o.Commit()
			}
			return err
		})
	})
}

// View implements [store.Store].
func (s *hooked) View(ctx context.Context, f func(store.Reader) error) error {
	return around(s.o.View, func() error { return s.Store.View(ctx, f) })
}

// Idle implements [store.Store].
func (s *hooked) Idle(ctx context.Context) error {
	return around(s.o.Idle, func() error { return s.Store.Idle(ctx) })
}

// Kill implements [store.Killer].
func (s *hooked) Kill() error {
	k, ok := s.Store.(store.Killer)
	if !ok {
		return errors.New("this store cannot be killed")
	}
	return k.Kill()
}

func around(hook func(run func() error) error, run func() error) error {
	if hook == nil {
		return run()
	}
	return hook(run)
}

type hookedTx struct {
	store.Tx
	o *Opener
}

// Append implements [store.Tx].
func (t *hookedTx) Append(ctx context.Context, e *store.Entry, tree *state.Tree) error {
	if err := t.o.Append(e, tree); err != nil {
		return err
	}
	return t.Tx.Append(ctx, e, tree)
}
