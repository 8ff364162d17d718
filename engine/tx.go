package engine

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/internal/argument"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Tx is a transaction of the engine: everything that is done through it is committed together, or not at all.
// Methods of workflows and tasks accept it instead of an Engine.
type Tx struct {
	e  *Engine
	tx *commit.Tx
}

// Update runs f in one transaction, which includes its commands and its SQL on the user's own tables, and returns when the
// transaction is durable. f runs on the engine's writer, so it must be short, and must use the Tx instead of the engine. A
// command that fails is rolled back alone, and f may continue; if f returns an error, the whole transaction is rolled back. An
// error that wraps store.ErrUndone says that SQL of f has ended the transaction: f cannot continue then.
//
// f is called at most once, unless the option [Repeatable] is given. If the context ends before f was called, f is not called;
// after that, Update returns the outcome even if the context ends. So f may set variables of the caller.
//
// If several engines share a database, an error that wraps store.ErrConflict says that another engine changed a case that f
// used; the transaction was rolled back.
func (e *Engine) Update(ctx context.Context, f func(*Tx) error, opts ...UpdateOption) error {
	argument.Context(ctx, "Engine.Update")
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

// updateOptions are the options of an Update.
type updateOptions struct{ repeatable bool }

// Repeatable allows Update to call its function more than once; the effects of an earlier call are rolled back first. Then the transaction
// can be shared with other requests, which saves a sync for each of them. And instead of failing, it is repeated if the SQL of another
// request ends the transaction, if another engine changed a case first, or if its own SQL meets a deadlock or a serialization failure, or, up to
// twice, if its connection ends meanwhile. A
// function that only assigns results to variables of its caller is repeatable; a function that counts its calls or sends a mail is not.
func Repeatable() UpdateOption { return func(o *updateOptions) { o.repeatable = true } }

// Do is like [Engine.Do], as part of the transaction. A command that fails is rolled back alone.
func (tx *Tx) Do(_ context.Context, c workflow.Command) (workflow.Result, error) {
	return tx.e.commands.Do(tx.tx, c)
}

// DB returns the connection for the user's own SQL in the transaction. After the end of the transaction every
// statement is an error.
func (tx *Tx) DB() domain.DB { return tx.tx.DB() }

// Now is the time of the transaction.
func (tx *Tx) Now() time.Time { return tx.tx.Now() }

// HasBounds reports whether Config.MaxPending limits a queue of the engine. The limits apply to starts by [Engine.Do], and not to
// those of the transaction.
func (tx *Tx) HasBounds() bool { return len(tx.e.cfg.MaxPending) > 0 }

// Case returns the state of a case as the transaction sees it.
func (tx *Tx) Case(_ context.Context, id workitem.CaseID) (*state.Case, error) { return tx.tx.Case(id) }

// RunInfo is like [Engine.RunInfo], as the transaction sees it, except that a stuck run is reported as waiting, since finding that out
// takes another query.
func (tx *Tx) RunInfo(_ context.Context, id workitem.CaseID) (workflow.RunInfo, error) {
	c, err := tx.tx.Case(id)
	if err != nil {
		return workflow.RunInfo{}, err
	}
	return runInfo(c, tx.tx.Now()), nil
}
