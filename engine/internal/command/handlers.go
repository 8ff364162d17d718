package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// maxNesting bounds the depth of completion handlers that end cases which have completion handlers.
const maxNesting = 20

// RootEnded handles the end of a root case: it starts the next queued case with its business key, starts its dead
// letter if it failed, and calls its completion handlers. Handlers that need a job get it before the others are called:
// while the case has jobs it cannot be removed, so a handler cannot remove it before all have been called.
func (x *Executor) RootEnded(tx *commit.Tx, u *commit.TreeWrite) error {
	c := kernel.Info(u.Tree.Case(u.Tree.Root))
	o, err := workflow.OptionsOf(c)
	if err != nil {
		return err
	}
	d := x.o.Definitions.Definition(c.Fingerprint)
	root := u.Tree.Case(u.Tree.Root)
	if root.Unique || o.Queued {
		if err := x.startNextQueued(tx, root); err != nil {
			return err
		}
	}
	if root.State == state.CaseFailed && d.DeadLetter != nil {
		if err := x.caseLetter(tx, u, root, d.DeadLetter); err != nil {
			return err
		}
	}
	var now []workflow.HandlerCall
	for _, t := range o.OnComplete {
		if !t.Includes(c.State) {
			continue
		}
		if h := d.Handlers[t.Handler]; h != nil && h.Run != nil && !tx.Deferred() {
			now = append(now, t)
		} else if err := x.callByJob(tx, u, t, nil); err != nil {
			return err
		}
	}
	switch len(now) {
	case 0:
		return nil
	case 1:
		return x.callInTx(tx, u, d, c, now[0])
	}
	err = tx.Savepoint(func() error {
		for _, t := range now {
			if err := x.callInTx(tx, u, d, c, t); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, errCaseRemoved) {
		return err
	}
	for _, t := range now { // the savepoint has undone the removal, so the case can have jobs
		if err := x.callByJob(tx, u, t, nil); err != nil {
			return err
		}
	}
	return nil
}

// errCaseRemoved says that a completion handler failed after an earlier one had removed the case, which the job that
// repeats the handler would need. The effects of the handlers are rolled back, and jobs call all of them. The command
// itself is not run again, since it may be part of an Update whose function must not be called twice.
var errCaseRemoved = errors.New("the run was removed by a completion handler before another one failed")

// callInTx calls a handler in the transaction. If it fails, only its own effects are rolled back, and a job calls it
// later.
func (x *Executor) callInTx(tx *commit.Tx, u *commit.TreeWrite, d *workflow.Definition, c activities.CaseInfo, t workflow.HandlerCall) error {
	tx.CallsHandler()
	err := tx.Savepoint(func() error { return x.callHandler(tx, d, c, t) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kernel.ErrAbandoned), errors.Is(err, store.ErrUndone):
		return fmt.Errorf("%w: %w", commit.ErrDefer, err)
	}
	x.o.Log.Error("a completion handler failed; a job calls it again",
		"handler", t.Handler, "workflow", c.Workflow, "case", c.ID, "error", err)
	if u.Tree.Removed() { // by an earlier handler
		return fmt.Errorf("%w: %w", errCaseRemoved, err)
	}
	return x.callByJob(tx, u, t, failureOf(err))
}

// callByJob opens a job that calls a handler: now, or after the first backoff if the handler has failed.
func (x *Executor) callByJob(tx *commit.Tx, u *commit.TreeWrite, t workflow.HandlerCall, failure *workitem.Failure) error {
	wait, _ := kernel.Backoff.Next(retry.Failure{Attempt: 1, Err: failure})
	if failure == nil {
		wait = 0
	}
	return tx.Run(u, "", func(m *kernel.Machine) error { return m.OpenHandlerCall(t, failure, wait) })
}

// callHandler calls a handler with the transaction.
func (x *Executor) callHandler(tx *commit.Tx, d *workflow.Definition, c activities.CaseInfo, t workflow.HandlerCall) error {
	h := d.Handlers[t.Handler]
	if h == nil || h.Run == nil {
		return fmt.Errorf("workflow %s has no completion handler %q that can be called in a transaction", d.Name, t.Handler)
	}
	if tx.Depth() > maxNesting {
		return fmt.Errorf("%w: completion handlers end cases whose handlers end cases, %d deep", kernel.ErrRunaway, maxNesting)
	}
	err := tx.Callback(func(ctx context.Context) error { return h.Run(builder.WithTx(ctx, x.o.Public(tx)), c, t.Value) })
	if err != nil {
		return fmt.Errorf("completion handler %s of %s: %w", t.Handler, d.Name, err)
	}
	return nil
}

// CallDue calls the handler of a due job. The job is already completed in this transaction, so the handler may remove
// the case.
func (x *Executor) CallDue(tx *commit.Tx, u *commit.TreeWrite, j *state.Job) error {
	c := kernel.Info(u.Tree.Case(u.Tree.Root))
	d := x.o.Definitions.Definition(c.Fingerprint)
	if d == nil {
		return registry.ErrNotLoaded
	}
	err := x.callHandler(tx, d, c, workflow.HandlerCall{Handler: j.Name, Value: j.Input})
	if err == nil || errors.Is(err, kernel.ErrAbandoned) {
		return err
	}
	// A failure hides what the error wraps: a handler that returns, for example, store.ErrNotFound must not look like a fault.
	if errors.Is(err, kernel.ErrRunaway) {
		return &runawayError{failureOf(err)}
	}
	return failureOf(err)
}

// failureOf is the failure of a handler. A handler whose command does not terminate has the code runaway.
func failureOf(err error) *workitem.Failure {
	f := workitem.FailureOf(err)
	if errors.Is(err, kernel.ErrRunaway) {
		f.Code = workitem.CodeRunaway
	}
	return f
}

// runawayError is the failure of a handler that is not tried again, as each try takes as long as the bounds allow.
type runawayError struct{ *workitem.Failure }

// Unwrap returns the failure, and the error that says what it is.
func (e *runawayError) Unwrap() []error { return []error{e.Failure, kernel.ErrRunaway} }
