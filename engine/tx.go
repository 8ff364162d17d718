package engine

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Tx is one transaction of the engine: everything that is done through it happens together, or not at all. Workflows
// and tasks take it in place of an [Engine].
type Tx struct {
	e  *Engine
	tx *commit.Tx
}

// Update runs f in one transaction with whatever it does to cases and to the user's own tables, and returns when that
// is durable. It runs on the engine's writer, so f must not call the engine itself, only the Tx, and must be short. A
// command that fails is undone alone, so f may go on; if f returns an error, nothing of all this happened. An error that wraps
// [store.ErrUndone] says that SQL of f undid the transaction: f cannot go on then.
//
// f is called once at most, unless [Repeatable] says that it may be called again. If the context ends before that, f is not
// called; once it is called, Update returns its outcome whether or not the context ends. So f may use variables of its caller.
//
// Where several engines share a database, an error that wraps [store.ErrConflict] says that another one changed a case that f
// used; nothing of the transaction happened.
func (e *Engine) Update(ctx context.Context, f func(*Tx) error, opts ...UpdateOption) error {
	if f == nil {
		return errors.New("Update: there is no function to call: it is nil")
	}
	r := &commit.Request{Held: true, Run: func(tx *commit.Tx) error {
		return tx.Callback(func(context.Context) error { return f(&Tx{e, tx}) })
	}}
	var o updateOptions
	for _, set := range opts {
		if set != nil {
			set(&o)
		}
	}
	r.Once = !o.repeatable
	return e.writer.Submit(ctx, r)
}

// UpdateOption changes how [Engine.Update] runs a function.
type UpdateOption func(*updateOptions)

// updateOptions are what the options of an Update set.
type updateOptions struct{ repeatable bool }

// Repeatable says that the function of an Update may be called more than once: what an earlier call did in the transaction is
// undone by then. So the transaction is shared with other requests, which saves a sync each; and it is done again, instead of
// failing, if SQL of another request undoes it, another engine was faster, or its own SQL met a deadlock or a serialization failure. A function whose variables of its caller only
// hold results of the last call is repeatable; one that counts its calls, or sends a mail, is not.
func Repeatable() UpdateOption { return func(o *updateOptions) { o.repeatable = true } }

// Do is like [Engine.Do], as part of the transaction. A command that fails is undone alone.
func (tx *Tx) Do(_ context.Context, c workflow.Command) (workflow.Result, error) {
	return tx.e.commands.Do(tx.tx, c)
}

// DB runs the user's own SQL in the transaction. After its end every statement is an error.
func (tx *Tx) DB() domain.DB { return tx.tx.DB() }

// Now is the time of the transaction.
func (tx *Tx) Now() time.Time { return tx.tx.Now() }

// Case returns the state of a case as the transaction sees it.
func (tx *Tx) Case(_ context.Context, id workitem.CaseID) (*state.Case, error) { return tx.tx.Case(id) }

// RunInfo is like [Engine.RunInfo], as the transaction sees it, except that a run that is stuck is reported as waiting: it takes a query
// to find out.
func (tx *Tx) RunInfo(_ context.Context, id workitem.CaseID) (workflow.RunInfo, error) {
	c, err := tx.tx.Case(id)
	if err != nil {
		return workflow.RunInfo{}, err
	}
	return runInfo(c, tx.tx.Now()), nil
}
