package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The engine calls the user's code on goroutines of its own, where a panic would end the process, and runtime.Goexit the engine.

// wayOut is how a function ends without a result.
type wayOut struct {
	out  func()
	says string
}

func waysOut() map[string]wayOut {
	return map[string]wayOut{
		"panic":  {func() { panic("boom") }, "panicked: boom"},
		"goexit": {runtime.Goexit, "ended its goroutine"},
	}
}

// torn is a payload that cannot be read, since its method does not return.
type torn struct{ Way string }

func (p *torn) UnmarshalJSON(data []byte) error {
	if way, ok := waysOut()[string(bytes.Trim(data, `"`))]; ok {
		way.out()
	}
	return nil
}

func (p torn) MarshalJSON() ([]byte, error) { return json.Marshal(p.Way) }

// sayer makes a function that shows that an engine works.
func sayer() *builder.FuncRef[string, string] {
	return builder.MustFunc("echo", func(_ context.Context, s string) (string, error) { return s, nil })
}

func requireWorks(t *testing.T, e *enginetest.Engine, f *builder.FuncRef[string, string]) {
	t.Helper()
	run, err := f.Run(t.Context(), e, "still here")
	require.NoError(t, err)
	e.Drain()
	said, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "still here", said)
}

func TestAPayloadWhoseMethodDoesNotReturnIsRefused(t *testing.T) {
	for name, way := range waysOut() {
		t.Run(name, func(t *testing.T) {
			b := builder.New[torn]("torn")
			task := builder.Task(b, "read", builder.Work[torn, torn]{Input: builder.CaseInput(b)})
			b.Path(b.Start(), task, b.End())
			w, f := b.MustBuild(), sayer()
			e := enginetest.New(t, w, f)
			_, err := w.Start(t.Context(), e, torn{Way: name})
			require.ErrorIs(t, err, engine.ErrCallback)
			require.ErrorContains(t, err, way.says)

			id, err := w.Start(t.Context(), e, torn{})
			require.NoError(t, err)
			e.StartItem(id, "read")
			item := e.Item(id, "read").ID
			err = task.Complete(t.Context(), e, item, torn{Way: name})
			require.ErrorIs(t, err, engine.ErrCallback)
			require.ErrorContains(t, err, way.says)
			_, err = e.Do(t.Context(), workflow.AddItem(id, "read", json.RawMessage(`"`+name+`"`)))
			require.ErrorIs(t, err, engine.ErrCallback)
			requireWorks(t, e, f)
		})
	}
}

func TestALimitWhoseFunctionDoesNotReturnFailsTheJob(t *testing.T) {
	for name, way := range waysOut() {
		t.Run(name, func(t *testing.T) {
			limited := builder.MustFunc("limited", func(context.Context, string) (string, error) { return "", nil },
				builder.Limits(builder.TakesBy(limit.Resource("customer", 1), 1, func(string) string { way.out(); return "" })))
			f := sayer()
			e := enginetest.New(t, limited, f)
			run, err := limited.Run(t.Context(), e, "ann")
			require.NoError(t, err)
			e.Drain()
			_, err = run.Result(t.Context(), e)
			require.ErrorContains(t, err, way.says)
			requireWorks(t, e, f)
		})
	}
}

func TestACommitOfTheMiddlewareThatDoesNotReturnIsLogged(t *testing.T) {
	for name, way := range waysOut() {
		t.Run(name, func(t *testing.T) {
			var log logBook
			f := sayer()
			e := enginetest.Open(t, enginetest.Store(t), engine.Config{
				Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})),
				Wrap:   []engine.Middleware{{Commit: func(engine.Commit) { way.out() }}},
			}, f)
			requireWorks(t, e, f)
			lines := log.lines(t, "a Commit of Config.Wrap failed; what was committed stands")
			require.Len(t, lines, 1, "it is logged once while it lasts")
			require.Contains(t, lines[0]["error"], way.says)
			if name == "panic" {
				require.Contains(t, lines[0]["stack"], "user_code_test.go")
			}
		})
	}
}

func TestAMiddlewareThatDoesNotReturnRefusesTheCommandOfAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, way := range waysOut() {
		t.Run(name, func(t *testing.T) {
			f, path := sayer(), filepath.Join(t.TempDir(), "echo.db")
			e := enginetest.Open(t, sqlite.File(path), engine.Config{
				Wrap: []engine.Middleware{{Command: func(ctx context.Context, c workflow.Command, next engine.Commander) (workflow.Result, error) {
					done, err := next(ctx, c)
					if c.Actor == "after" {
						way.out()
					}
					return done, err
				}}, {Command: func(ctx context.Context, c workflow.Command, next engine.Commander) (workflow.Result, error) {
					if c.Actor == "before" {
						way.out()
					}
					return next(ctx, c)
				}}},
			}, f)
			_, err := post(t, path, workflow.Start("echo", json.RawMessage(`"x"`), workflow.By("before")))
			require.ErrorIs(t, err, engine.ErrCallback)
			require.ErrorContains(t, err, way.says)
			done, err := post(t, path, workflow.Start("echo", json.RawMessage(`"x"`), workflow.By("after")))
			require.NoError(t, err, "the command was executed, and answered")
			c, err := e.Wait(t.Context(), done.Case)
			require.NoError(t, err)
			require.Equal(t, state.CaseCompleted, c.State)
			requireWorks(t, e, f)
		})
	}
}

// dice are random bits that are there at times.
type dice struct{ gone func() error }

func (d *dice) Read(p []byte) (int, error) {
	if d.gone != nil {
		return 0, d.gone() // no error is nothing yet, as io.Reader allows
	}
	return len(p), nil
}

func TestFailedRandomSourceFailsOnlyCommands(t *testing.T) {
	for says, gone := range map[string]func() error{
		"no entropy":        func() error { return errors.New("no entropy") },
		"it panicked: boom": func() error { panic("boom") },
		"EOF":               func() error { return io.EOF },
		"multiple Read calls return no data or error": func() error { return nil },
	} {
		t.Run(says, func(t *testing.T) {
			quiet := slog.New(slog.DiscardHandler)
			_, err := engine.Config{Random: &dice{gone}, Logger: quiet}.Open(t.Context(), sqlite.Memory())
			require.ErrorIs(t, err, workitem.ErrRandom)
			require.ErrorContains(t, err, "Config.Random: the source of random bits failed: "+says)

			b := builder.New[string]("case")
			task := builder.Task(b, "do", builder.Work[string, string]{Input: builder.CaseInput(b)})
			b.Path(b.Start(), task, b.End())
			w, random := b.MustBuild(), &dice{}
			e := enginetest.Open(t, enginetest.Store(t), engine.Config{Random: random, Logger: quiet}, w)
			ended, err := w.Start(t.Context(), e, "x")
			require.NoError(t, err)
			_, err = e.Do(t.Context(), workflow.Cancel(ended, nil))
			require.NoError(t, err)
			started, refused := 1, error(nil)
			_ = e.Update(t.Context(), func(*engine.Tx) error { random.gone = gone; return nil }) // on the goroutine that reads
			for ; refused == nil; started++ {
				_, refused = w.Start(t.Context(), e, "x")
			}
			require.ErrorIs(t, refused, workitem.ErrRandom)
			require.Equal(t, "random-failed", engine.Code(refused))
			_, err = e.Wait(t.Context(), ended)
			require.NoError(t, err, "what only reads needs no ids")
			_ = e.Update(t.Context(), func(*engine.Tx) error { random.gone = nil; return nil })
			_, err = w.Start(t.Context(), e, "x")
			require.NoError(t, err, "there are random bits again")
			require.Equal(t, started, cases(t, e), "nothing of what failed is there")
		})
	}
}

// unfit is a handler of a log that does not return.
type unfit struct{ way wayOut }

func (unfit) Enabled(context.Context, slog.Level) bool    { return true }
func (u unfit) Handle(context.Context, slog.Record) error { u.way.out(); return nil }
func (u unfit) WithAttrs([]slog.Attr) slog.Handler        { return u }
func (u unfit) WithGroup(string) slog.Handler             { return u }

// deaf is a handler that panics before it is given anything.
type deaf struct{ unfit }

func (d deaf) Enabled(context.Context, slog.Level) bool { panic("boom") }

func TestALogThatDoesNotReturnLosesItsRecords(t *testing.T) {
	ways := waysOut()
	for name, handler := range map[string]slog.Handler{
		"panic": unfit{ways["panic"]}, "goexit": unfit{ways["goexit"]}, "enabled": deaf{},
	} {
		t.Run(name, func(t *testing.T) {
			f := sayer()
			e := enginetest.Open(t, enginetest.Store(t), engine.Config{
				Logger: slog.New(handler),
				Wrap:   []engine.Middleware{{Commit: func(engine.Commit) { panic("this is logged") }}},
			}, f)
			requireWorks(t, e, f)
		})
	}
}

func TestACallbackCannotCloseTheEngine(t *testing.T) {
	f := sayer()
	e, err := engine.Open(t.Context(), sqlite.Memory(), f)
	require.NoError(t, err)
	closed := func(depth int) error {
		return e.Update(t.Context(), func(*engine.Tx) error { return deep(depth, e.Close) })
	}
	for _, depth := range []int{0, 60, 500} {
		err := closed(depth)
		require.ErrorIs(t, err, engine.ErrCallback)
		require.ErrorContains(t, err, "it called Close")
		run, err := f.Run(t.Context(), e, "still here")
		require.NoError(t, err)
		said, err := run.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, "still here", said)
	}
	require.NoError(t, e.Close(), "it was not counted as a Close")
	require.ErrorIs(t, closed(0), engine.ErrClosed)
}

// deep calls a function from a stack of so many calls.
func deep(depth int, f func() error) error {
	if depth == 0 {
		return f()
	}
	return deep(depth-1, f)
}
