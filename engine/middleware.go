package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/workflow"
)

// Middleware wraps the operations of an engine, to measure or trace them, to add to their context, or to reject them; see [Config].
// Each function calls next once, or returns an error, and may be called by several goroutines concurrently. A nil function wraps
// nothing.
type Middleware struct {
	// Command wraps a command of [Engine.Do] and of the typed handles, and a command that another process left in the store. next
	// executes the command, and returns when it is durable or has failed. Commands within [Engine.Update] are part of its transaction,
	// and are not wrapped. A panic is an error of the command (ErrCallback); if next was called, the command may have been executed.
	Command func(ctx context.Context, c workflow.Command, next Commander) (workflow.Result, error)

	// Job wraps each call of the function of a job. next calls it with the given context and returns its error. step.ErrSuspended
	// says that the function is called again when one of its steps has ended, step.ErrYielded that it is called again when a
	// worker is available. Returning an error instead of nil fails the attempt. An error of the function may be wrapped, but not
	// replaced by success.
	Job func(ctx context.Context, w *activities.Work, next func(context.Context) error) error

	// Step is like Job for the function of the step with the given name. The function of step.Tx is called within a
	// transaction, so the middleware must be fast.
	Step func(ctx context.Context, w *activities.Work, name string, next func(context.Context) error) error

	// Commit is called after each commit that changed something, in order, and the next commit waits for it: it must return at once, and
	// must not use the engine. A call that panics or takes longer than CallbackTimeout is logged; the commit is not affected.
	Commit func(Commit)
}

// Commit is the size of a commit: what its commands, including those of the engine itself, appended to the journal.
type Commit struct {
	Commands int // those that changed something; 1 or more
	Entries  int // of the journal: one for each tree of cases that a command changed
	Changes  int // in the entries
	Bytes    int // the encoded size of the changes in the journal
}

// Commander executes a command.
type Commander func(ctx context.Context, c workflow.Command) (workflow.Result, error)

// errNotCalled is the error of a middleware that returns nil without calling next.
var errNotCalled = errors.New("a middleware of Config.Wrap returned nil and did not call next: call it, or return an error")

// wrapped combines middleware into one; a function is nil if none of it has one.
// The last one of the list is the innermost, so the first sees a command before all others, and its result after
// them.
func wrapped(all []Middleware) (m Middleware) {
	for i := len(all) - 1; i >= 0; i-- {
		m = all[i].around(m)
	}
	return m
}

// around wraps the middleware inner in m.
func (m Middleware) around(inner Middleware) Middleware {
	all := inner
	if m.Command != nil {
		all.Command = func(ctx context.Context, c workflow.Command, next Commander) (workflow.Result, error) {
			return m.command(ctx, c, func(ctx context.Context, c workflow.Command) (workflow.Result, error) {
				return inner.command(ctx, c, next)
			})
		}
	}
	if m.Job != nil {
		all.Job = func(ctx context.Context, w *activities.Work, next func(context.Context) error) error {
			return surround(ctx, next, func(ctx context.Context, next func(context.Context) error) error {
				return m.Job(ctx, w, func(ctx context.Context) error {
					if inner.Job == nil {
						return next(ctx)
					}
					return inner.Job(ctx, w, next)
				})
			})
		}
	}
	if m.Step != nil {
		all.Step = func(ctx context.Context, w *activities.Work, name string, next func(context.Context) error) error {
			return surround(ctx, next, func(ctx context.Context, next func(context.Context) error) error {
				return m.Step(ctx, w, name, func(ctx context.Context) error {
					if inner.Step == nil {
						return next(ctx)
					}
					return inner.Step(ctx, w, name, next)
				})
			})
		}
	}
	if m.Commit != nil {
		all.Commit = func(c Commit) {
			m.Commit(c)
			if inner.Commit != nil {
				inner.Commit(c)
			}
		}
	}
	return all
}

// committed returns the function that passes the sizes of commits to the middleware; nil if none has such a function.
func (e *Engine) committed() func(commit.Size) {
	if e.wrap.Commit == nil {
		return nil
	}
	return func(s commit.Size) {
		e.wrap.Commit(Commit{Commands: s.Requests, Entries: s.Entries, Changes: s.Changes, Bytes: s.Bytes})
	}
}

// command executes a command within the middleware.
func (m Middleware) command(ctx context.Context, c workflow.Command, next Commander) (workflow.Result, error) {
	if m.Command == nil {
		return next(ctx, c)
	}
	return m.surroundCommand(ctx, c, next)
}

// surroundCommand executes a command within a middleware that has a function for commands.
func (m Middleware) surroundCommand(ctx context.Context, c workflow.Command, next Commander) (workflow.Result, error) {
	var done workflow.Result
	err := surround(ctx, func(ctx context.Context) (err error) {
		done, err = next(ctx, c)
		return err
	}, func(ctx context.Context, next func(context.Context) error) error {
		result, err := m.guarded(ctx, c, func(ctx context.Context, changed workflow.Command) (workflow.Result, error) {
			// The middleware may have changed the command, such as its actor; next executes what it was given.
			c = changed
			err := next(ctx)
			return done, err
		})
		done = result
		return err
	})
	return done, err
}

// surround calls next within a middleware. It returns an error if next failed or was not called, whatever the
// middleware returns.
// Otherwise a middleware could report a command as done that was rolled back, or a function as completed that did not
// run.
func surround(ctx context.Context, next func(context.Context) error, middleware func(context.Context, func(context.Context) error) error) error {
	var failed error
	called := false
	err := middleware(ctx, func(ctx context.Context) error {
		called, failed = true, next(ctx)
		return failed
	})
	switch {
	case err != nil:
		return err
	case !called:
		return errNotCalled
	}
	return failed
}

// guarded calls the function for commands. A panic is an error: it would otherwise end the program of a caller that has no part in it.
func (m Middleware) guarded(ctx context.Context, c workflow.Command, next Commander) (_ workflow.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: a middleware of Config.Wrap %w", ErrCallback, commit.NewPanic(p))
		}
	}()
	return m.Command(ctx, c, next)
}
