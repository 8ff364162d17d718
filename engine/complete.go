package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// errLate says that a completion handler took so long that it was left behind, or that its SQL undid the whole transaction. The
// command is run again, and a job calls the handler: so the case ends in any case.
var errLate = errors.New("a completion handler took its transaction with it")

// maxNesting bounds how deep handlers end cases whose handlers end cases.
const maxNesting = 20

// complete tells the completion handlers of a root case that the command has ended.
func (tx *Tx) complete(u *treeWrite, changes []state.Change) error {
	for _, e := range changes {
		if end, ok := e.(*state.CaseEnded); ok && end.Case == u.tree.Root {
			return tx.callHandlers(u)
		}
	}
	return nil
}

// callHandlers calls the completion handlers of a root case that has ended. Jobs are opened first, so that a handler which
// removes the case is refused while another one has still to be called.
func (tx *Tx) callHandlers(u *treeWrite) error {
	c := kernel.Info(u.tree.Case(u.tree.Root))
	o, err := workflow.OptionsOf(c)
	if err != nil {
		return err
	}
	d := tx.e.byPrint[c.Fingerprint]
	var now []workflow.HandlerCall
	for _, t := range o.OnComplete {
		if !t.Includes(c.State) {
			continue
		}
		if h := d.Handlers[t.Handler]; h != nil && h.Run != nil && !tx.late {
			now = append(now, t)
		} else if err := tx.callByJob(u, t, nil); err != nil {
			return err
		}
	}
	switch len(now) {
	case 0:
		return nil
	case 1:
		return tx.callInTx(u, d, c, now[0])
	}
	err = tx.savepoint(func() error {
		for _, t := range now {
			if err := tx.callInTx(u, d, c, t); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, errRunGone) {
		return err
	}
	for _, t := range now { // what they did is undone, and the run is there again
		if err := tx.callByJob(u, t, nil); err != nil {
			return err
		}
	}
	return nil
}

// errRunGone says that a completion handler failed after an earlier one had removed the run, by which a job could have
// told it again. The handlers that were told are undone, and jobs tell them all: the command itself is not done again,
// since it may be a part of an Update whose function must not be called twice.
var errRunGone = errors.New("the run was removed by a completion handler before another one failed")

// callInTx calls a handler in the transaction. If it fails, what it did is undone alone, and a job calls it later.
func (tx *Tx) callInTx(u *treeWrite, d *workflow.Definition, c activities.CaseInfo, t workflow.HandlerCall) error {
	err := tx.savepoint(func() error { return tx.callHandler(d, c, t) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kernel.ErrAbandoned), errors.Is(err, store.ErrUndone):
		return fmt.Errorf("%w: %w", errLate, err)
	}
	tx.e.log.Error("a completion handler failed; a job tells it again",
		"handler", t.Handler, "workflow", c.Workflow, "case", c.ID, "error", err)
	if u.tree.Removed() { // by an earlier handler
		return fmt.Errorf("%w: %w", errRunGone, err)
	}
	return tx.callByJob(u, t, workitem.FailureOf(err))
}

// callByJob has a job call a handler; after a failure the first wait of its backoff comes first.
func (tx *Tx) callByJob(u *treeWrite, t workflow.HandlerCall, failure *workitem.Failure) error {
	wait, _ := backoff.Next(retry.Failure{Attempt: 1, Err: failure})
	if failure == nil {
		wait = 0
	}
	return tx.do(u, "", func(m *kernel.Machine) error { return m.Tell(t, failure, wait) })
}

// callHandler calls a handler with the transaction.
func (tx *Tx) callHandler(d *workflow.Definition, c activities.CaseInfo, t workflow.HandlerCall) error {
	h := d.Handlers[t.Handler]
	if h == nil || h.Run == nil {
		return fmt.Errorf("workflow %s has no completion handler %q that could be told in a transaction", d.Name, t.Handler)
	}
	if tx.nesting++; tx.nesting > maxNesting {
		return fmt.Errorf("%w: completion handlers end cases whose handlers end cases, %d deep", ErrRunaway, maxNesting)
	}
	defer func() { tx.nesting-- }()
	err := tx.callback(func(ctx context.Context) error { return h.Run(builder.WithTx(ctx, tx), c, t.Value) })
	if err != nil {
		return fmt.Errorf("completion handler %s of %s: %w", t.Handler, d.Name, err)
	}
	return nil
}

// callDue does what a job that calls a handler is for. The job is done already, in this transaction: so the handler may
// remove the case.
func (tx *Tx) callDue(u *treeWrite, j *state.Job) error {
	c := kernel.Info(u.tree.Case(u.tree.Root))
	d := tx.e.byPrint[c.Fingerprint]
	if d == nil {
		return errNotLoaded
	}
	err := tx.callHandler(d, c, workflow.HandlerCall{Handler: j.Name, Value: j.Input})
	if err == nil || errors.Is(err, kernel.ErrAbandoned) {
		return err
	}
	return workitem.FailureOf(err) // whatever it wraps is the handler's, and not for the engine to read
}

// callback gives control to the user's code, which comes back in through the methods of the Tx.
func (tx *Tx) callback(f func(ctx context.Context) error) error {
	ctx, users := tx.ctx, tx.users
	tx.users = true
	tx.gate.Out()
	err := tx.e.runner.call(ctx, func(ctx context.Context) error {
		tx.ctx = ctx
		return f(ctx)
	})
	if errors.Is(err, kernel.ErrAbandoned) {
		tx.gate.Lock()
		return err
	}
	tx.ctx, tx.users = ctx, users
	return errors.Join(err, tx.gate.In())
}
