package engine

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
)

// lose stops the engine if an error says that its database was taken away ([store.ErrLost]), since nothing that it did from
// then on could be acknowledged: nothing is claimed or tried again, the contexts of jobs are canceled, who waits gets the
// error, and so does each command. [Engine.Close] remains to be called. It returns the error that commands get from now
// on, and any other error as it is.
//
//	who                            learns of the loss by
//	a caller of a command          the error of its command, now and later
//	who waits, watches or drains   the error of its call, at once
//	a running function             its context, which is canceled
//	the operator                   one line of the log
func (e *Engine) lose(err error) error {
	if !errors.Is(err, store.ErrLost) {
		return err
	}
	e.loss.Do(func() {
		e.lost.Store(&err)
		e.log.Error("the engine stops: its database was taken away. Close it, and open it again when the files are back", "error", err)
		e.dispatch.Stop()
		e.cleaner.Stop()
		e.endWork()
		e.cancel()
		e.notifier.Close(e.closedError())
	})
	return e.closedError()
}

// endWork lets nothing more begin. What is queued is done, and then the writer ends.
func (e *Engine) endWork() {
	e.ending.Do(func() {
		close(e.closing)
		e.alarms.Close()
		e.writer.Close()
	})
}

// closedError is the error of what an engine refuses that has stopped. It wraps ErrClosed, and store.ErrLost if that is why.
func (e *Engine) closedError() error {
	if lost := e.lost.Load(); lost != nil {
		return fmt.Errorf("%w: %w", ErrClosed, *lost)
	}
	return ErrClosed
}
