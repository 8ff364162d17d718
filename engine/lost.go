package engine

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
)

// stopIfLost stops the engine if an error says that it has lost its database ([store.ErrLost]), since it cannot
// acknowledge anything from then on: no job is claimed or retried, the contexts of jobs are canceled, and waits and
// commands fail with the error. [Engine.Close] still has to be called. stopIfLost returns the error for further
// commands, and any other error unchanged.
//
//	receiver                       gets the loss as
//	a caller of a command          the error of its command, now and later
//	waits, watches and drains      the error of the call, at once
//	a running function             its context, which is canceled
//	the operator                   one line of the log
func (e *Engine) stopIfLost(err error) error {
	if !errors.Is(err, store.ErrLost) {
		return err
	}
	e.loss.Do(func() {
		e.lost.Store(&err)
		todo := "the engine stops: its database was taken away. Close it, and open it again when the files are back"
		if errors.Is(err, store.ErrNewer) {
			todo = "the engine stops: its program is too old for the database. Start the newer program in its place"
		}
		e.log.Error(todo, "error", err)
		e.dispatch.Stop()
		e.cleaner.Stop()
		e.endWork()
		e.cancel()
		e.notifier.Close(e.closedError())
	})
	return e.closedError()
}

// endWork stops the start of further work. The writer executes queued requests, and ends.
func (e *Engine) endWork() {
	e.ending.Do(func() {
		close(e.closing)
		e.alarms.Close()
		e.writer.Close()
	})
}

// closedError is the error of commands after the engine has stopped. It wraps ErrClosed, and store.ErrLost if that is
// the cause.
func (e *Engine) closedError() error {
	if lost := e.lost.Load(); lost != nil {
		return fmt.Errorf("%w: %w", ErrClosed, *lost)
	}
	return ErrClosed
}
