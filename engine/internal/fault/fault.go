// Package fault handles errors of the store that are not the fault of a command: a full disk, a lost connection, a lock
// of another program. A command of a caller returns such an error, and the caller can repeat it. A command of the
// engine itself, such as the result of a job, has no caller, so it is repeated with backoff until the store works or
// the engine closes. It neither counts as an attempt of a job nor fails one.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrCommit says that a command was executed, but the store could not commit it.
var ErrCommit = errors.New("the store could not commit")

// ErrOwnSQL says that the connection ended each time the SQL of a command ran. That is no fault of the store: the same
// command would end the next connection too, and that of others with it.
var ErrOwnSQL = errors.New("the SQL of the command ends its own connection")

// Is reports whether an error is a fault: one of the store, or of the source of random bits.
func Is(err error) bool {
	if errors.Is(err, ErrOwnSQL) {
		return false
	}
	return errors.Is(err, ErrCommit) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, workitem.ErrRandom)
}

// As marks an error of the store as a fault, except for errors that are a normal result, such as ErrNotFound.
func As(err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUndone) ||
		errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// The wait before the next attempt doubles from firstWait to lastWait.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second

	// Levels is the number of different waits: 50 ms doubled seven times exceeds lastWait.
	Levels = 8
)

// Wait returns the wait after a number of consecutive faults before this one. It is real time, also if the engine has a
// virtual clock: a full disk does not depend on that.
func Wait(faults int) time.Duration { return min(lastWait, firstWait<<min(faults, Levels-1)) }

// Retrier repeats commands of the engine itself.
type Retrier struct {
	Closing <-chan struct{} // closed when the engine begins to close
	Closed  func() error    // returns the error for commands after the close
}

// Pause waits after a fault. It reports false if the engine closed or the context ended meanwhile.
func (r Retrier) Pause(ctx context.Context, faults int) bool {
	timer := time.NewTimer(Wait(faults))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Closing:
	case <-ctx.Done():
	}
	return false
}

// Retry calls f until it returns nil or an error that is no fault, and returns that. If the engine closes first, it
// returns the error of Closed; if the context ends, its cause.
func (r Retrier) Retry(ctx context.Context, f func() error) error {
	for faults := 0; ; faults++ {
		err := f()
		if !Is(err) {
			return err
		}
		if !r.Pause(ctx, faults) {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return r.Closed()
		}
	}
}
