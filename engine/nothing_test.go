package engine_test

import (
	"context"
	"io/fs"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ordered is a workflow of a program's own type.
type ordered struct{ *builder.Workflow[prompt] }

// A nil pointer in an interface is not nil, and is refused as nil is.
func TestNilPointersAreRefused(t *testing.T) {
	for _, w := range []engine.Workflow{(*bulk.Bulk)(nil), (*ordered)(nil), (*builder.FuncRef[int, int])(nil)} {
		_, err := engine.Open(t.Context(), sqlite.Memory(), w)
		require.EqualError(t, err, "workflow 1 of 1 is nil: look at the error of its Build")
	}
	_, err := (*bulk.Bulk)(nil).Start(t.Context(), nil, bulk.Action{}, nil)
	require.ErrorContains(t, err, "the Bulk is nil; make it by bulk.New")
	s := builder.Schedule(schedule.Schedule{Name: "daily", Cron: "@daily"}, (*builder.FuncRef[int, int])(nil), 1)
	require.ErrorContains(t, s.Check(), "call Build first")
}

// A pointer to a failure that was never set is no nil error: the function has failed, and the message says why.
func TestANilFailureAsAnErrorIsExplained(t *testing.T) {
	f := builder.MustFunc("f", func(context.Context, int) (int, error) {
		var failure *workitem.Failure
		return 0, failure
	}, builder.Retry(func(p *retry.Policy) { *p = retry.Policy{Attempts: 1} }))
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	_, err = run.Result(t.Context(), e)
	require.Equal(t, workitem.CodeError, engine.Code(err))
	require.ErrorContains(t, err, "the error is a nil *workitem.Failure, which is not a nil error: return nil itself")
}

// What is wrong with an option has a stable code, whatever option it is, and no case is started.
func TestWrongOptionsHaveCodes(t *testing.T) {
	f := builder.MustFunc("f", echo)
	e := enginetest.New(t, f)
	for code, options := range map[string][]workflow.Option{
		"invalid-payload": {workflow.Label("a b", "x"), workflow.Label("a", string(make([]byte, 300)))},
		"bad-command": {workflow.BusinessKey(""), workflow.FromStep(""), builder.Retry(func(p *retry.Policy) { p.Attempts = -7 }),
			builder.Retry(func(p *retry.Policy) { p.Filters = []retry.Filter{nil} }), workflow.OncePer("", "")},
	} {
		for i, o := range options {
			_, err := f.Run(t.Context(), e, 1, o)
			require.Equal(t, code, engine.Code(err), "%d: %v", i, err)
		}
	}
	_, err := e.Do(t.Context(), workflow.With(workflow.Start("f", []byte("1")), builder.Retry(nil)))
	require.Equal(t, "bad-command", engine.Code(err))
	for range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.Fail(t, "nothing was started")
	}
}

// The zero id is named in errors, where its text would be empty.
func TestTheZeroIDIsNamed(t *testing.T) {
	f, _ := function(t, "f", echo)
	e := enginetest.New(t, f)
	ctx := t.Context()
	start(t, e, f, 1)
	for name, ask := range map[string]func() error{
		"case":   func() error { _, err := e.Case(ctx, workitem.CaseID{}); return err },
		"why":    func() error { _, err := e.Why(ctx, workitem.CaseID{}); return err },
		"wait":   func() error { _, err := e.Wait(ctx, workitem.CaseID{}); return err },
		"item":   func() error { _, err := e.Engine.Item(ctx, workitem.ID{}); return err },
		"status": func() error { _, err := f.Of(workitem.CaseID{}).Status(ctx, e); return err },
	} {
		err := ask()
		require.ErrorIs(t, err, engine.ErrNotFound, name)
		require.ErrorContains(t, err, "(zero id)", name)
	}
}

func TestABackupNeedsAName(t *testing.T) {
	f, _ := function(t, "f", echo)
	e := enginetest.Open(t, sqlite.Memory(), engine.Config{}, f) // PostgreSQL has no backup of the engine's
	err := e.Backup(t.Context(), "")
	require.EqualError(t, err, "the copy has no name: name a file that is not there yet")
	require.NotErrorIs(t, err, fs.ErrExist)
}

func TestAViewOfAContextThatHasEndedIsRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, file := range []store.Opener{sqlite.Memory(), sqlite.File(t.TempDir() + "/view.db")} {
		e, err := engine.Open(t.Context(), file)
		require.NoError(t, err)
		err = e.View(ctx, func(store.Reader) error {
			require.Fail(t, "it is not called")
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, e.Close())
	}
}

// What functions take of limits is kept as long as a case or an engine needs it.
func TestTakesOfRemovedDefinitionsAreDeleted(t *testing.T) {
	file := sqlite.File(t.TempDir() + "/takes.db")
	cfg := engine.Config{Logger: slog.New(slog.DiscardHandler)}
	version := func(v string, n int64) *builder.FuncRef[int, int] {
		return builder.MustFunc("f", echo, builder.Version(v), builder.Limits(builder.Takes(limit.Resource("db", 9), n)))
	}
	takes := func(e *engine.Engine) (n int) {
		require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
			all, err := r.Settings(t.Context())
			require.NoError(t, err)
			known, err := store.ReadTakes(all)
			n = len(known)
			return err
		}))
		return n
	}
	open := func(workflows ...engine.Workflow) *engine.Engine {
		e, err := cfg.Open(t.Context(), file, workflows...)
		require.NoError(t, err)
		return e
	}
	one, two := version("1", 1), version("2", 2)
	e := open(one)
	run, err := one.Run(t.Context(), e, 1, workflow.After(time.Hour))
	require.NoError(t, err)
	require.NoError(t, e.Close())

	e = open(two)
	require.Equal(t, 2, takes(e), "a case of version 1 goes on")
	require.NoError(t, e.Close())
	e = open(one, two)
	_, err = e.Do(t.Context(), workflow.Cancel(run.ID, nil))
	require.NoError(t, err)
	c, err := e.Case(t.Context(), run.ID)
	require.NoError(t, err)
	require.Equal(t, state.CaseCanceled, c.State)
	require.NoError(t, e.Close())

	e = open(two)
	require.Equal(t, 1, takes(e))
	require.NoError(t, e.Close())
	e = open(one, two)
	require.Equal(t, 2, takes(e), "an engine has version 1 again")
	require.NoError(t, e.Close())
}
