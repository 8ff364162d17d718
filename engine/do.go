package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/command"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/dispatch"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Do executes a command, and returns when it is durable. It is safe to repeat with the same [workflow.Key].
//
// If the context ends while the command is queued, the command is withdrawn; if it has begun by then, it may still happen, as the
// error says. [Code] has a word for each kind of error.
//
// A start that would add a job to a full queue is refused with [ErrFull], or waits; see [Config].
func (e *Engine) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	return e.wrap.command(ctx, c, e.do)
}

// do executes a command as one request of the writer; others may be in the same commit.
func (e *Engine) do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	if c.Kind == workflow.KindStart && len(e.cfg.MaxPending) > 0 {
		return e.startIfRoom(ctx, &c)
	}
	return commit.Query(ctx, e.writer, &commit.Request{}, func(tx *commit.Tx) (workflow.Result, error) {
		return e.commands.Execute(tx, &c)
	})
}

// startIfRoom executes a start, if the queues of its jobs have room.
func (e *Engine) startIfRoom(ctx context.Context, c *workflow.Command) (workflow.Result, error) {
	for {
		var a dispatch.Admission
		var room <-chan struct{}
		result, err := commit.Query(ctx, e.writer, &commit.Request{}, func(tx *commit.Tx) (workflow.Result, error) {
			e.dispatch.Settle(&a) // it is done again
			result, err := e.commands.Execute(tx, c)
			if err == nil {
				room, err = e.dispatch.Admit(tx, &a)
			}
			return result, err
		})
		e.dispatch.Settle(&a)
		if !e.cfg.WaitWhenFull || !errors.Is(err, ErrFull) {
			return result, err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return result, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-e.closing:
			return result, e.closedError()
		}
	}
}

// NotLoadedError refuses to act on a case whose version of its workflow the engine was not opened with. It is an
// [ErrUnknown], with the code "not-loaded".
type NotLoadedError = kernel.NotLoadedError

// TokenCase returns the root case a token is for, whether or not the token is good. The error wraps [ErrNotFound] if it
// cannot be one.
func TokenCase(token string) (workitem.CaseID, error) { return command.TokenCase(token) }
