package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// book is what a middleware has seen.
type book struct {
	mu    sync.Mutex
	lines []string
}

func (b *book) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

// take returns what was noted since the last time, of the lines that have the text.
func (b *book) take(with string) (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.lines {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	b.lines = nil
	return lines
}

// wait waits until a line was noted, and forgets all.
func (b *book) wait(t *testing.T, line string) {
	t.Helper()
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Contains(b.lines, line)
	}, time.Minute, time.Millisecond, line)
	b.take("")
}

type withName struct{}

// noting notes what it surrounds under a name, which it adds to the context.
func (b *book) noting(name string) engine.Middleware {
	in := func(ctx context.Context) context.Context {
		outer, _ := ctx.Value(withName{}).(string)
		return context.WithValue(ctx, withName{}, outer+name)
	}
	return engine.Middleware{
		Command: func(ctx context.Context, c workflow.Command, next engine.Commander) (workflow.Result, error) {
			b.note("%s %s", name, c.Kind)
			result, err := next(in(ctx), workflow.With(c, workflow.Trace(c.Trace+name)))
			b.note("%s %s: %v %s", name, c.Kind, !result.Case.IsZero(), engine.Code(err))
			return result, err
		},
		Job: func(ctx context.Context, w *activities.Work, next func(context.Context) error) error {
			b.note("%s job of %s, trace %s, queue %q, due %v", name, w.Item.Task, w.Trace, w.Queue, !w.Due.IsZero())
			err := next(in(ctx))
			b.note("%s job: suspended %v, code %s", name, errors.Is(err, step.ErrSuspended), engine.Code(err))
			return err
		},
		Step: func(ctx context.Context, w *activities.Work, step string, next func(context.Context) error) error {
			b.note("%s step %s of %s", name, step, w.Item.Task)
			return next(in(ctx))
		},
	}
}

// callsChild is a workflow with a child case; the function in it has two steps and a wait between them.
func callsChild(t *testing.T, b *book) *builder.Workflow[string] {
	t.Helper()
	inner := builder.New[string]("inner")
	work := builder.Task(inner, "work", builder.Work[string, string]{Input: builder.CaseInput(inner),
		Run: func(ctx context.Context, in string) (string, error) {
			seen := func(ctx context.Context) (string, error) { return ctx.Value(withName{}).(string), nil }
			first, err := step.Do(ctx, "first", seen)
			if err != nil {
				return "", err
			}
			if err := step.Sleep(ctx, "sleep", time.Hour); err != nil {
				return "", err
			}
			second, err := step.Do(ctx, "second", seen)
			b.note("steps in %s and %s, function in %s", first, second, ctx.Value(withName{}))
			if in == "bad" {
				err = &workitem.Failure{Code: "no-paper"}
			}
			return in, err
		}})
	inner.Path(inner.Start(), work, inner.End())
	child, err := inner.Build()
	require.NoError(t, err)
	outer := builder.New[string]("outer")
	sub := builder.Composite(outer, "sub", child, builder.Cases[string]{Input: builder.CaseInput(outer)})
	outer.Path(outer.Start(), sub, outer.End())
	w, err := outer.Build()
	require.NoError(t, err)
	return w
}

// Middleware surrounds commands, jobs and steps, the first outermost, and a case keeps the trace that it was started in over its
// waits, its child cases and a crash.
func TestMiddlewareSurroundsCommandsJobsAndSteps(t *testing.T) {
	t.Parallel()
	b := new(book)
	w := callsChild(t, b)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Wrap: []engine.Middleware{b.noting("a"), {}, b.noting("b")}}, w)
	_, err := w.Start(t.Context(), e, "good")
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []string{"a start", "b start", "b start: true ", "a start: true "}, b.take(" start"))
	e.Crash()
	b.take("")
	e.Advance(time.Hour)
	require.Equal(t, []string{
		`a job of work, trace ab, queue "", due true`, `b job of work, trace ab, queue "", due true`,
		"a step second of work", "b step second of work", "steps in abab and abab, function in ab",
		"b job: suspended false, code ", "a job: suspended false, code ",
	}, b.take(""), "a step that was remembered is not called")

	_, err = w.Start(t.Context(), e, "bad")
	require.NoError(t, err)
	e.Drain()
	require.Contains(t, b.take(""), "b job: suspended true, code error")
	e.Advance(time.Hour)
	require.Contains(t, b.take(""), "a job: suspended false, code no-paper")
	_, err = e.Do(t.Context(), workflow.Cancel(workitem.CaseID{1}, nil))
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.Equal(t, []string{"a cancel", "b cancel", "b cancel: false not-found", "a cancel: false not-found"}, b.take(""))
}

// A command that another process has left is surrounded, too, and the other process gets the refusal of a middleware.
func TestMiddlewareSurroundsTheCommandsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	b := new(book)
	w := callsChild(t, b)
	path := filepath.Join(t.TempDir(), "outer.db")
	refusing := engine.Middleware{Command: func(ctx context.Context, c workflow.Command, next engine.Commander) (workflow.Result, error) {
		if c.Actor == "eve" {
			return workflow.Result{}, &workitem.Failure{Code: "no-right"}
		}
		return next(ctx, c)
	}}
	e := enginetest.Open(t, sqlite.File(path), engine.Config{Wrap: []engine.Middleware{b.noting("a"), refusing}}, w)
	start := func(actor string) workflow.Command {
		return workflow.Start("outer", json.RawMessage(`"good"`), workflow.By(actor))
	}
	_, err := post(t, path, start("eve"))
	require.Equal(t, "no-right", engine.Code(err))
	require.Equal(t, []string{"a start", "a start: false no-right"}, b.take(""))
	result, err := post(t, path, start("ann"))
	require.NoError(t, err)
	require.Equal(t, state.CaseStarted, caseOf(t, e, result.Case).State)
	b.wait(t, "a start: true ")
	_, err = post(t, path, workflow.Cancel(workitem.CaseID{1}, nil))
	require.ErrorIs(t, err, engine.ErrNotFound)
	b.wait(t, "a cancel: false not-found")
	_, err = post(t, path, workflow.Command{Kind: "stop"})
	require.Equal(t, "bad-command", engine.Code(err))
}

// A middleware cannot hide that something failed or was not done, and what it fails itself fails.
func TestMiddlewareHidesNoFailure(t *testing.T) {
	t.Parallel()
	b := new(book)
	w := callsChild(t, b)
	hides := func(_ context.Context, _ *activities.Work, _ func(context.Context) error) error { return nil }
	hiding := engine.Middleware{
		Command: func(ctx context.Context, c workflow.Command, next engine.Commander) (workflow.Result, error) {
			if c.Kind == workflow.KindCancel {
				return workflow.Result{}, nil
			}
			return next(ctx, c)
		},
		Job: hides,
	}
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Wrap: []engine.Middleware{hiding}}, w)
	id, err := w.Start(t.Context(), e, "good")
	require.NoError(t, err)
	_, err = e.Do(t.Context(), workflow.Cancel(id, nil))
	require.ErrorContains(t, err, "did not call next")
	e.Drain()
	require.Equal(t, state.CaseFailed, caseOf(t, e, id).State)
	require.Contains(t, caseOf(t, e, id).Failure.Message, "did not call next")
}

// The trace of a command does not count for its idempotency key, and is bounded.
func TestTheTraceOfACommand(t *testing.T) {
	t.Parallel()
	w := callsChild(t, new(book))
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: -1}, w)
	start := func(trace string) (workflow.Result, error) {
		return e.Do(t.Context(), workflow.Start("outer", json.RawMessage(`"good"`), workflow.Key("k"), workflow.Trace(trace)))
	}
	first, err := start("one")
	require.NoError(t, err)
	second, err := start("two")
	require.NoError(t, err)
	require.Equal(t, first, second)
	_, err = start(string(make([]byte, workflow.MaxTrace+1)))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(first.Case, nil)))
	again, err := e.Do(t.Context(), workflow.Restart(first.Case, workflow.Trace("three")))
	require.NoError(t, err)
	require.JSONEq(t, `{"trace":"one"}`, string(caseOf(t, e, first.Case).Options))
	require.JSONEq(t, `{"trace":"three"}`, string(caseOf(t, e, again.Case).Options))
}
