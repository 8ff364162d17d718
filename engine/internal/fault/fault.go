// Package fault is about errors of the store that say nothing of the command that met them, as a full disk or a lock that
// another program holds. The engine's own commands, which have no caller to repeat them, are tried again until the store
// works or the engine closes: no attempt is counted and no failure is recorded.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrCommit says that a command was fine and the store could not commit it.
var ErrCommit = errors.New("the store could not commit")

// Is reports whether an error is the store's, or one of the source of random bits, which says nothing of a command either.
func Is(err error) bool {
	return errors.Is(err, ErrCommit) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, workitem.ErrRandom)
}

// As marks an error of the store as a fault: any but those that answer what was asked.
func As(err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUndone) ||
		errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// The wait before a command that met a fault is tried again doubles from the first to the last.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second

	// Levels is how many different waits there are: 50 ms doubled seven times is longer than the last.
	Levels = 8
)

// Wait is the wait after a number of faults in a row, from 0 on. It is time of the machine, whatever the engine's clock is: a
// disk that is full has nothing to do with the time that a process lives in.
func Wait(faults int) time.Duration { return min(lastWait, firstWait<<min(faults, Levels-1)) }

// Retrier tries commands of the engine's own again.
type Retrier struct {
	Closing <-chan struct{} // closed when the engine begins to close
	Closed  func() error    // the error of what a closed engine refuses
}

// Pause waits after a fault; false if the engine or the context ended meanwhile.
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

// Insist calls f until its error is no fault, and returns that error. It is that of Closed if the engine closes first, and
// that of the context if it ends.
func (r Retrier) Insist(ctx context.Context, f func() error) error {
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
