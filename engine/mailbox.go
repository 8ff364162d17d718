package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/mailbox"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// startMailbox executes the commands that other processes leave in the store; there are none in a store without a store.Watcher.
// [Engine.Drain] waits for those that were left before the engine was opened.
func (e *Engine) startMailbox() {
	if w, ok := e.store.(store.Watcher); ok {
		e.mailbox = e.newPoller(w)
		e.mailbox.Start(e.ctx)
	}
}

func (e *Engine) newPoller(w store.Watcher) *mailbox.Poller {
	return mailbox.New(mailbox.Options{
		Watcher: w, Executor: executor{e}, Report: e.reportPoll, Backoff: faultWait, Active: e.active.add,
	})
}

// reportPoll logs when commands of other processes cannot be executed, unless that is because the engine closes.
func (e *Engine) reportPoll(err error) error {
	if err = e.lose(err); errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		err = nil
	}
	e.faults.note("inbox", err, "commands of other processes could not be taken; they stay, and are tried again")
	return err
}

// executor implements mailbox.Executor.
type executor struct{ e *Engine }

// Requests implements mailbox.Executor.
func (x executor) Requests(ctx context.Context, after int64, max int) ([]store.Request, error) {
	return submitFor(ctx, x.e, &request{}, func(tx *Tx) ([]store.Request, error) {
		return tx.s.Requests(tx.ctx, after, max)
	})
}

// Submit implements mailbox.Executor.
func (x executor) Submit(ctx context.Context, left store.Request) (wait func() error, err error) {
	if stays, err := x.stays(ctx, left); stays || err != nil {
		return func() error { return nil }, err
	}
	r := &request{run: func(tx *Tx) error { return tx.serve(left) }}
	if err := x.e.ask(ctx, r); err != nil {
		return nil, err
	}
	return func() error {
		err := x.e.take(r, <-r.done)
		if errors.Is(err, store.ErrUndone) && !isFault(err) {
			err = x.e.refuseAlone(ctx, left, err)
		}
		return err
	}, nil
}

// stays reports whether a command is to stay because it starts a workflow that this engine was not opened with, but that the
// database knows: a program that has it may come.
func (x executor) stays(ctx context.Context, left store.Request) (bool, error) {
	c, err := workflow.Decode(left.Command)
	if err != nil || c.Kind != workflow.KindStart || !c.WaitForOwner || x.e.byName[c.Workflow] != nil {
		return false, nil // if it cannot be decoded, it is refused
	}
	var stored []*store.Definition
	err = x.e.store.View(ctx, func(r store.Reader) (err error) {
		stored, err = r.Definitions(ctx)
		return err
	})
	return slices.ContainsFunc(stored, func(d *store.Definition) bool { return d.Name == c.Workflow }), err
}

// refuseAlone answers a command whose own transaction is gone, and its answer with it.
func (e *Engine) refuseAlone(ctx context.Context, left store.Request, cause error) error {
	return e.submit(ctx, &request{run: func(tx *Tx) error { return tx.refuse(left, cause) }})
}

// refuse answers a command with an error.
func (tx *Tx) refuse(left store.Request, cause error) error {
	tx.e.log.Info("a command of another process was refused", "request", left.ID, "error", cause)
	return tx.s.Reply(tx.ctx, left.ID, store.Answer{Code: Code(cause), Error: cause.Error()})
}

// serve executes a command that was left, and records the answer in the same transaction: so it is executed once, whatever fails. A
// command that is refused undoes itself alone. One that only another program can execute is refused too, or stays if it is to.
func (tx *Tx) serve(left store.Request) error {
	c, err := workflow.Decode(left.Command)
	if err == nil {
		if err = tx.notLoaded(&c); err != nil && c.WaitForOwner {
			tx.rollback()
			return nil
		}
	}
	var result json.RawMessage
	if err == nil {
		err = tx.s.Savepoint(tx.ctx, func() error {
			done, err := tx.execute(&c)
			if err == nil {
				result, err = json.Marshal(done)
			}
			return err
		})
	}
	if errors.Is(err, errLate) || isFault(err) || errors.Is(err, store.ErrUndone) {
		return err // the whole of it is done again, or there is nothing left that an answer could be part of
	}
	if err != nil {
		tx.rollback()
		return tx.refuse(left, err)
	}
	return tx.s.Reply(tx.ctx, left.ID, store.Answer{Result: result})
}
