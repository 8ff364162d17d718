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

// maxNesting bounds how deep handlers end cases whose handlers end cases.
const maxNesting = 20

// RootEnded has the next case with the key of a root case that has ended begin, and calls its completion handlers. Jobs are
// opened first, so that a handler which removes the case is refused while another one has still to be called.
func (x *Executor) RootEnded(tx *commit.Tx, u *commit.TreeWrite) error {
	c := kernel.Info(u.Tree.Case(u.Tree.Root))
	o, err := workflow.OptionsOf(c)
	if err != nil {
		return err
	}
	d := x.o.Definitions.Definition(c.Fingerprint)
	root := u.Tree.Case(u.Tree.Root)
	if root.Unique || o.Queued {
		if err := x.next(tx, root); err != nil {
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
	if !errors.Is(err, errRunGone) {
		return err
	}
	for _, t := range now { // what they did is undone, and the run is there again
		if err := x.callByJob(tx, u, t, nil); err != nil {
			return err
		}
	}
	return nil
}

// errRunGone says that a completion handler failed after an earlier one had removed the run, by which a job could have
// called them again. What the called handlers did is undone, and jobs call them all: the command itself is not done again,
// since it may be a part of an Update whose function must not be called twice.
var errRunGone = errors.New("the run was removed by a completion handler before another one failed")

// callInTx calls a handler in the transaction. If it fails, what it did is undone alone, and a job calls it later.
func (x *Executor) callInTx(tx *commit.Tx, u *commit.TreeWrite, d *workflow.Definition, c activities.CaseInfo, t workflow.HandlerCall) error {
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
		return fmt.Errorf("%w: %w", errRunGone, err)
	}
	return x.callByJob(tx, u, t, workitem.FailureOf(err))
}

// callByJob has a job call a handler; after a failure the first wait of its backoff comes first.
func (x *Executor) callByJob(tx *commit.Tx, u *commit.TreeWrite, t workflow.HandlerCall, failure *workitem.Failure) error {
	wait, _ := kernel.Backoff.Next(retry.Failure{Attempt: 1, Err: failure})
	if failure == nil {
		wait = 0
	}
	return tx.Run(u, "", func(m *kernel.Machine) error { return m.Tell(t, failure, wait) })
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

// CallDue does what a job that calls a handler is for. The job is done already, in this transaction: so the handler may
// remove the case.
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
	return workitem.FailureOf(err) // whatever it wraps is the handler's, and not for the engine to read
}
