package engine

import (
	"context"

	"github.com/tasq-dev/tasq/engine/internal/command"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Do executes a command, and returns when it is durable. It is safe to repeat with the same [workflow.Key].
//
// If the context ends while the command is queued, the command is withdrawn; if it has begun by then, it may still happen, as the
// error says. [Code] has a word for each kind of error.
func (e *Engine) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	return commit.Query(ctx, e.writer, &commit.Request{}, func(tx *commit.Tx) (workflow.Result, error) {
		return e.commands.Execute(tx, &c)
	})
}

// NotLoadedError refuses to act on a case whose version of its workflow the engine was not opened with. It is an
// [ErrUnknown], with the code "not-loaded".
type NotLoadedError = kernel.NotLoadedError

// TokenCase returns the root case a token is for, whether or not the token is good. The error wraps [ErrNotFound] if it
// cannot be one.
func TokenCase(token string) (workitem.CaseID, error) { return command.TokenCase(token) }
