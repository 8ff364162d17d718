package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/mailbox"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// The path of a command that another process, such as tasq, leaves for the engine:
//
//	other process                     store               engine
//	writes the request ─────────────▶ inbox
//	                                  inbox ────────────▶ mailbox.Poller takes it
//	                                  answer, inbox ◀──── one commit: its changes, its answer, and the removal of the request
//	reads the answer ◀─────────────── answer
//
// These three are in one commit, so a command is executed once, however often either process dies: if the engine dies
// before the commit, the request is still in the inbox; if it dies after it, the answer is stored.

// startMailbox starts to execute the commands that other processes leave in the store, if the store has an inbox.
// [Engine.Drain] waits for those that were left before the engine was opened.
func (e *Engine) startMailbox() {
	if w, ok := e.store.(store.Watcher); ok && w.Reachable() {
		e.mailbox = e.newPoller(w)
		e.mailbox.Start(e.ctx)
	}
}

// newPoller returns the poller of the inbox. It waits longer after each fault of the store, and counts as activity
// while it works, so that Drain waits for these commands too.
func (e *Engine) newPoller(w mailbox.Watcher) *mailbox.Poller {
	return mailbox.New(mailbox.Options{
		Watcher: w, Executor: executor{e}, Report: e.reportPoll, Backoff: fault.Wait, Active: e.active.add,
	})
}

// reportPoll logs when the commands of other processes cannot be executed, unless the engine is closing.
func (e *Engine) reportPoll(err error) error {
	if err = e.stopIfLost(err); errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		err = nil
	}
	e.faults.Note("inbox", err, "commands of other processes could not be taken; they stay, and are tried again")
	return err
}

// executor implements mailbox.Executor.
type executor struct{ e *Engine }

// Requests implements mailbox.Executor.
func (x executor) Requests(ctx context.Context, after int64, max int) ([]store.Request, error) {
	return commit.Query(ctx, x.e.writer, &commit.Request{}, func(tx *commit.Tx) ([]store.Request, error) {
		return tx.Store().Requests(tx.Context(), after, max)
	})
}

// Submit implements mailbox.Executor.
func (x executor) Submit(ctx context.Context, left store.Request) (wait func() error, err error) {
	if elsewhere, err := x.startsElsewhere(ctx, left); elsewhere || err != nil {
		return func() error { return nil }, err
	}
	c, bad := workflow.Decode(left.Command)
	if x.e.wrap.Command == nil || bad != nil {
		return x.ask(ctx, &mailCommand{request: left, command: c, err: bad})
	}
	return x.wrapped(ctx, left, c)
}

// ask queues a command; wait returns after its answer is durable.
func (x executor) ask(ctx context.Context, s *mailCommand) (wait func() error, err error) {
	done, err := x.e.writer.Ask(ctx, &commit.Request{Run: func(tx *commit.Tx) error { return x.e.serve(tx, s) }})
	if err != nil {
		return nil, err
	}
	return func() error {
		err := done()
		switch {
		case err == nil && s.lacks:
			err = x.leaveOrRefuse(ctx, s)
		case errors.Is(err, store.ErrUndone) && !fault.Is(err):
			s.refused = err
			err = x.e.refuseSeparately(ctx, s.request, err)
		}
		if errors.Is(err, errAnswered) {
			return nil
		}
		return err
	}, nil
}

// wrapped is like ask within the middleware of the engine, which runs on a separate goroutine. Commands are queued in
// their order nevertheless.
func (x executor) wrapped(ctx context.Context, left store.Request, c workflow.Command) (wait func() error, err error) {
	// Both have room for their one value, so the goroutine ends even if the caller has stopped waiting.
	queued, over := make(chan error, 1), make(chan error, 1)
	go func() {
		var failed error // of the store
		asked, refused := false, errMiddlewareExited
		defer func() {
			if !asked { // the middleware refused it
				queued <- nil
				failed = x.e.refuseSeparately(ctx, left, refused)
			}
			over <- failed
		}()
		_, refused = x.e.wrap.command(ctx, c, func(ctx context.Context, c workflow.Command) (workflow.Result, error) {
			s := &mailCommand{request: left, command: c}
			wait, err := x.ask(ctx, s)
			asked = true
			queued <- err
			if err == nil {
				err = wait()
			}
			failed = err
			return s.result, errors.Join(err, s.refused)
		})
	}()
	if err := <-queued; err != nil {
		return nil, err
	}
	return func() error { return <-over }, nil
}

// errMiddlewareExited is the error of a middleware that ended its goroutine instead of returning.
var errMiddlewareExited = fmt.Errorf("%w: a middleware of Config.Wrap ended its goroutine, as runtime.Goexit and the FailNow of a test do; "+
	"let it return an error", ErrCallback)

// startsElsewhere reports whether a command stays in the inbox, because it starts a workflow that this engine was not
// opened with, but that another program has. It is asked before the middleware runs.
func (x executor) startsElsewhere(ctx context.Context, left store.Request) (bool, error) {
	c, err := workflow.Decode(left.Command)
	if err == nil {
		c, err = c.Tried()
	}
	if err != nil || c.Kind != workflow.KindStart || x.e.definitions.Named(c.Workflow) != nil || !c.WaitForOwner && x.e.fleet == nil {
		return false, nil // if it cannot be decoded, it is refused
	}
	return x.knownElsewhere(ctx, &workflow.UnknownError{Workflow: c.Workflow, Fingerprint: c.Fingerprint}, c.WaitForOwner)
}

// refuseSeparately answers a command in a new transaction, since its own was rolled back with the answer.
func (e *Engine) refuseSeparately(ctx context.Context, left store.Request, cause error) error {
	return e.writer.Submit(ctx, &commit.Request{Run: func(tx *commit.Tx) error { return e.refuse(tx, left, cause) }})
}

// refuse answers a command with an error.
func (e *Engine) refuse(tx *commit.Tx, left store.Request, cause error) error {
	e.log.Info("a command of another process was refused", "request", left.ID, "error", cause)
	err := tx.Store().Reply(tx.Context(), left.ID, store.Answer{Code: Code(cause), Error: cause.Error()})
	if errors.Is(err, ErrNotFound) && e.fleet != nil {
		return errAnswered
	}
	return err
}

// errAnswered rolls back a command that another engine has executed meanwhile.
var errAnswered = errors.New("another engine has answered the command")

// mailCommand is a command of the inbox with its outcome.
type mailCommand struct {
	request store.Request
	command workflow.Command
	err     error // why it cannot be decoded; nil if it can

	result  workflow.Result
	refused error // why it failed; nil if it succeeded
	lacks   bool  // it failed because this engine lacks a definition, and has no answer yet
}

// serve executes a command of the inbox, and stores the answer in the same transaction, so that it is executed once.
// The changes of a command that fails are rolled back alone. A command that fails since this engine lacks a definition
// gets no answer yet, if another program may have it: see leaveOrRefuse.
func (e *Engine) serve(tx *commit.Tx, s *mailCommand) error {
	left := s.request
	s.result, s.refused, s.lacks = workflow.Result{}, nil, false
	result, err := e.attempt(tx, s)
	if errors.Is(err, commit.ErrDefer) || fault.Is(err) || errors.Is(err, store.ErrUndone) {
		return err // the command is run again, or its transaction is gone, so that it cannot store an answer
	}
	if err != nil {
		tx.Rollback()
		s.refused = err
		if errors.Is(err, ErrUnknown) && (s.command.WaitForOwner || e.fleet != nil) {
			s.lacks = true
			return nil
		}
		return e.refuse(tx, left, err)
	}
	if err := tx.Store().Reply(tx.Context(), left.ID, store.Answer{Result: result}); !errors.Is(err, ErrNotFound) || e.fleet == nil {
		return err
	}
	return errAnswered
}

// attempt executes a command within a savepoint, and returns its result as JSON.
func (e *Engine) attempt(tx *commit.Tx, s *mailCommand) (result json.RawMessage, err error) {
	if s.err != nil {
		return nil, fmt.Errorf("%w; the program that left it may be newer than this one", s.err)
	}
	about, err := s.command.Tried()
	if err != nil {
		return nil, err
	}
	// Asked before the command runs, since a tree of cases belongs to one program, also if the command touches only
	// cases whose definitions this engine has.
	if err := e.commands.NotLoaded(tx, &about); err != nil {
		return nil, err
	}
	err = tx.Store().Savepoint(tx.Context(), func() error {
		if s.result, err = e.commands.Execute(tx, &s.command); err == nil {
			result, err = json.Marshal(s.result)
		}
		return err
	})
	if err != nil {
		s.result = workflow.Result{}
	}
	return result, err
}

// leaveOrRefuse answers a command that failed because this engine lacks a definition, unless another program has it:
// without an answer the command stays in the inbox. A command that waits for its owner stays also if that program is
// not open.
func (x executor) leaveOrRefuse(ctx context.Context, s *mailCommand) error {
	stays := false
	var err error
	if lacks, ok := errors.AsType[*NotLoadedError](s.refused); ok {
		stays = s.command.WaitForOwner || x.e.otherEngineHas(ctx, lacks.Fingerprint)
	} else if lacks, ok := errors.AsType[*workflow.UnknownError](s.refused); ok {
		stays, err = x.knownElsewhere(ctx, lacks, s.command.WaitForOwner)
	}
	if stays || err != nil {
		return err
	}
	return x.e.refuseSeparately(ctx, s.request, s.refused)
}

// knownElsewhere reports whether the database has a workflow that this engine was not opened with, and that another
// engine has, or that a command waits for.
func (x executor) knownElsewhere(ctx context.Context, lacks *workflow.UnknownError, waits bool) (bool, error) {
	var stored []*store.Definition
	err := x.e.View(ctx, func(r store.Reader) (err error) {
		stored, err = r.Definitions(ctx)
		return err
	})
	return slices.ContainsFunc(stored, func(d *store.Definition) bool {
		return d.Name == lacks.Workflow && (lacks.Fingerprint == "" || lacks.Fingerprint == d.Fingerprint) &&
			(waits || x.e.otherEngineHas(ctx, d.Fingerprint))
	}), err
}
