package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/command"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/dispatch"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/internal/argument"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Do executes a command, and returns when it is durable. It is safe to repeat with the same [workflow.Key].
//
// If the context ends while the command is queued, the command is withdrawn. If its execution has begun, it may still take
// effect, and the error says so. [Code] returns the code of an error.
//
// A start that would add a job to a full queue fails with ErrFull, or waits; see [Config].
func (e *Engine) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	argument.Context(ctx, "Engine.Do")
	return e.wrap.command(ctx, c, e.do)
}

// do executes a command as one request of the writer; others may be in the same commit.
func (e *Engine) do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	if c.Kind == workflow.KindStart && len(e.cfg.MaxPending) > 0 {
		return e.startIfRoom(ctx, &c)
	}
	return commit.Query(ctx, e.writer, &commit.Request{Key: c.Key}, func(tx *commit.Tx) (workflow.Result, error) {
		return e.commands.Execute(tx, &c)
	})
}

// roomPause is how long a start waits for room in this engine before it looks for room in the database, which other engines may have made.
const roomPause = 100 * time.Millisecond

// startIfRoom executes a start, if the queues of its jobs have room.
// A start that has waited is executed from the beginning: what it depends on, such as the holder of its business key,
// may have changed.
func (e *Engine) startIfRoom(ctx context.Context, c *workflow.Command) (workflow.Result, error) {
	for looked := false; ; {
		result, room, err := e.tryStart(ctx, c)
		if !errors.Is(err, ErrFull) {
			return result, err
		}
		if !looked && e.sharesJobs() { // another engine may have made room since the last look
			looked = true
			if failed := e.dispatch.LookForRoom(ctx); failed == nil && isClosed(room) {
				continue
			}
		}
		if !e.cfg.WaitWhenFull {
			return result, err
		}
		if stopped := e.awaitRoom(ctx, room); errors.Is(stopped, ErrClosed) {
			return result, stopped
		} else if stopped != nil {
			return result, fmt.Errorf("%w: %w", err, stopped)
		}
		looked = false
	}
}

// tryStart executes a start; room is closed when it may be tried again, if a queue is full.
func (e *Engine) tryStart(ctx context.Context, c *workflow.Command) (result workflow.Result, room <-chan struct{}, err error) {
	var a dispatch.Admission
	result, err = commit.Query(ctx, e.writer, &commit.Request{Key: c.Key}, func(tx *commit.Tx) (workflow.Result, error) {
		e.dispatch.Settle(&a) // the start is repeated
		result, err := e.commands.Execute(tx, c)
		if err == nil {
			room, err = e.dispatch.Admit(tx, &a)
		}
		return result, err
	})
	e.dispatch.Settle(&a)
	return result, room, err
}

// awaitRoom waits for room in a queue. The error is that of the context, or says that the engine is closed.
func (e *Engine) awaitRoom(ctx context.Context, room <-chan struct{}) error {
	var again <-chan time.Time // never, if each job belongs to this engine
	if e.sharesJobs() {
		ticks := time.NewTicker(roomPause)
		defer ticks.Stop()
		again = ticks.C
	}
	for {
		select {
		case <-room:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.closing:
			return e.closedError()
		case <-again:
			_ = e.dispatch.LookForRoom(ctx) // it is tried again
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// NotLoadedError is the error of a command on a case whose workflow version the engine was not opened with. It
// wraps ErrUnknown, and has the code "not-loaded".
type NotLoadedError = kernel.NotLoadedError

// TokenCase returns the root case that a token belongs to, without checking that the token is valid. The error wraps
// ErrNotFound if the text cannot be a token.
func TokenCase(token string) (workitem.CaseID, error) { return command.TokenCase(token) }
