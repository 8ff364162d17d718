package engine_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// opened opens an engine in memory that waits for real.
func opened(t *testing.T, workflows ...engine.Workflow) *engine.Engine {
	t.Helper()
	e, err := engine.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}.Open(t.Context(), sqlite.Memory(), workflows...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestOpenSaysWhatIsNil(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	_, err := engine.Open(t.Context(), nil, a)
	require.ErrorContains(t, err, "there is no store to open")
	var never *builder.Workflow[prompt] // as after a Build whose error was not looked at
	var action *builder.FuncRef[prompt, draft]
	for _, w := range []engine.Workflow{nil, never, action} {
		_, err = engine.Open(t.Context(), sqlite.Memory(), a, w)
		require.EqualError(t, err, "workflow 2 of 2 is nil: look at the error of its Build")
	}
}

// What no engine can work with is refused as it is opened.
func TestOpenRefusesWhatNoEngineCanWorkWith(t *testing.T) {
	for says, open := range map[string]func() error{
		`workflow 1 of 1 ("hand-made") was not built`: func() error {
			_, err := engine.Open(t.Context(), sqlite.Memory(), &workflow.Definition{Name: "hand-made"})
			return err
		},
		"owner of Config.Owner: invalid text: not UTF-8": func() error {
			_, err := engine.Config{Owner: "\xff"}.Open(t.Context(), sqlite.Memory())
			return err
		},
		`Config.MaxPending of queue "mail" is -1`: func() error {
			_, err := engine.Config{MaxPending: map[string]int{"mail": -1}}.Open(t.Context(), sqlite.Memory())
			return err
		},
	} {
		require.ErrorContains(t, open(), says)
	}
}

// ended starts a case of an article whose draft is made by run, and returns it when it has ended.
func ended(t *testing.T, run func(context.Context, prompt) (draft, error)) *state.Case {
	t.Helper()
	b := builder.New[prompt]("one")
	task := builder.Task(b, "draft", builder.Work[prompt, draft]{Input: builder.CaseInput(b), Run: run})
	b.Path(b.Start(), task, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := opened(t, w)
	id, err := w.Start(t.Context(), e, prompt{Text: "x"})
	require.NoError(t, err)
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	return c
}

// Whatever becomes of a function, its item ends: the FailNow of a test, for one, ends the goroutine that it is called
// on.
func TestAFunctionThatEndsItsGoroutineHasFailed(t *testing.T) {
	c := ended(t, func(context.Context, prompt) (draft, error) {
		runtime.Goexit()
		return draft{}, nil
	})
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, workitem.CodePanic, c.Failure.Code)
	require.Contains(t, c.Failure.Message, "ended its goroutine")
}

func TestAFailureIsKeptWhateverItHolds(t *testing.T) {
	for want, err := range map[string]error{
		"xxx... (10485760 bytes in all)":                      errors.New(strings.Repeat("x", 10<<20)),
		"m (its details had 1048576 bytes, and are left out)": &workitem.Failure{Message: "m", Details: []byte(strings.Repeat("1", 1<<20))},
		"torn": &workitem.Failure{Message: "torn", Details: []byte("{")},
	} {
		c := ended(t, func(context.Context, prompt) (draft, error) { return draft{}, err })
		require.Equal(t, state.CaseFailed, c.State)
		require.Truef(t, strings.HasSuffix(c.Failure.Message, want), "%.99s", c.Failure.Message)
		require.LessOrEqual(t, len(c.Failure.Message), workitem.MaxMessage)
		require.Equal(t, c.Failure, workitem.FailureOf(c.Failure), "made of itself it is the same")
	}
}

func TestACallbackThatEndsItsGoroutineIsUndone(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{OnEnabled: func(context.Context, *activities.Activation) error {
		runtime.Goexit()
		return nil
	}})
	e := opened(t, a)
	_, err := a.Start(t.Context(), e, prompt{Text: "x"})
	require.ErrorIs(t, err, engine.ErrCallback)
	require.ErrorContains(t, err, "it ended its goroutine")
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error { return nil }), "callbacks go on")
	for range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.Fail(t, "nothing happened")
	}
}

// A callback that calls the engine would wait for its own end. If its context identifies it, the call fails at once.
func TestACallbackThatCallsTheEngineIsRefused(t *testing.T) {
	var e *engine.Engine
	var calls []error
	a := newArticle(t, builder.Work[prompt, draft]{OnEnabled: func(ctx context.Context, a *activities.Activation) error {
		_, err := e.Case(ctx, a.Case().ID)
		calls = append(calls, err, enginetest.Do(ctx, e, workflow.Cancel(a.Case().ID, nil)))
		_, err = engine.Limits(e).Acquire(ctx) // for a shared limit it would wait for the writer, which waits for the callback
		calls = append(calls, err)
		return nil
	}})
	e = opened(t, a)
	_, err := a.Start(t.Context(), e, prompt{Text: "x"})
	require.NoError(t, err)
	require.Len(t, calls, 3)
	for _, err := range calls {
		require.ErrorIs(t, err, engine.ErrCallback)
		require.ErrorContains(t, err, "it called the engine, which waits for it")
	}
}

// The function of an Update often has the context of its caller. It is recognised by its goroutine, and only it: other callers wait, and another
// engine can be called.
func TestAnUpdateThatCallsTheEngineInsteadOfItsTransactionIsRefused(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	e, other := opened(t, a), opened(t, a)
	ctx := t.Context()
	id, err := a.Start(ctx, e, prompt{Text: "first"})
	require.NoError(t, err)
	var beside sync.WaitGroup
	require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
		began := make(chan struct{})
		beside.Go(func() {
			close(began)
			_, err := a.Start(ctx, e, prompt{Text: "beside"})
			assert.NoError(t, err)
		})
		<-began
		_, started := a.Start(ctx, e, prompt{Text: "nested"})
		_, waited := e.Wait(ctx, id)
		_, acquired := engine.Limits(e).Acquire(ctx)
		for _, err := range []error{started, waited, acquired, e.Update(ctx, func(*engine.Tx) error { return nil })} {
			assert.ErrorIs(t, err, engine.ErrCallback)
			assert.ErrorContains(t, err, "use what the callback was given, as the Tx of Update")
		}
		_, err := a.Start(ctx, other, prompt{Text: "elsewhere"})
		assert.NoError(t, err)
		_, err = a.Start(ctx, tx, prompt{Text: "in it"})
		return err
	}))
	beside.Wait()
	for of, want := range map[*engine.Engine]int{e: 3, other: 1} {
		n := 0
		for _, err := range store.AllCases(ctx, of, store.CaseFilter{}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, want, n)
	}
}

// A command through a transaction that has ended would be acknowledged without effect.
func TestATransactionThatIsOverDoesNothing(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	e := opened(t, a)
	for _, failure := range []error{nil, errors.New("undone")} {
		var kept *engine.Tx
		require.ErrorIs(t, e.Update(t.Context(), func(tx *engine.Tx) error { kept = tx; return failure }), failure)
		_, err := a.Start(t.Context(), kept, prompt{Text: "x"})
		require.ErrorContains(t, err, "use a Tx only within the function that it was given to")
		_, err = kept.DB().ExecContext(t.Context(), "SELECT 1")
		require.ErrorContains(t, err, "use a Tx only within the function that it was given to")
		require.Error(t, kept.DB().QueryRowContext(t.Context(), "SELECT 1").Scan(new(int)))
	}
}

func TestAListingCanBeReadTwiceAndAClosedEngineSaysSo(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	e := opened(t, a)
	for range 3 {
		_, err := a.Start(t.Context(), e, prompt{Text: "x"})
		require.NoError(t, err)
	}
	cases := store.AllCases(t.Context(), e, store.CaseFilter{Page: store.Page{Limit: 2}})
	journal := store.AllEntries(t.Context(), e, store.JournalFilter{Limit: 2})
	for range 2 {
		n, entries := 0, 0
		for _, err := range cases {
			require.NoError(t, err)
			n++
		}
		for _, err := range journal {
			require.NoError(t, err)
			entries++
		}
		require.Equal(t, []int{2, 2}, []int{n, entries})
	}
	require.NoError(t, e.Close())
	for _, err := range cases {
		require.ErrorIs(t, err, engine.ErrClosed)
	}
	_, err := counted(t, e)
	require.Equal(t, engine.ErrClosed, err)
}

// What is due in an engine that is closed begins no more, so who waits for its end would wait without end.
func TestDrainAfterClose(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	clock := virtual.NewClock()
	e, err := engine.Config{Clock: clock}.Open(t.Context(), sqlite.Memory(), a)
	require.NoError(t, err)
	_, err = a.Start(t.Context(), e, prompt{Text: "x"}, workflow.After(time.Minute))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	clock.Set(clock.Now().Add(time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.ErrorIs(t, e.Drain(ctx), engine.ErrClosed)
}

// A child case is a case like any other to who waits for it; a journal has only its root.
func TestWaitingForAChildCase(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	b := builder.New[prompt]("outer")
	child := builder.Composite(b, "child", a.Workflow, builder.Cases[prompt]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), child, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := opened(t, w)
	root, err := w.Start(t.Context(), e, prompt{Text: "x"})
	require.NoError(t, err)
	tree, err := store.TreeOf(t.Context(), e, root)
	require.NoError(t, err)
	id := tree.Case(root).Children[0]

	waited := make(chan error, 1)
	go func() {
		c, err := e.Wait(t.Context(), id)
		if err == nil && c.State != state.CaseCanceled {
			err = errors.New(c.State.String())
		}
		waited <- err
	}()
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(root, nil)))
	require.NoError(t, <-waited)

	for _, unknown := range []workitem.CaseID{id, {1}} {
		var seen []error
		for _, err := range e.Watch(t.Context(), unknown, 0) {
			seen = append(seen, err)
		}
		require.Len(t, seen, 1)
		require.ErrorIs(t, seen[0], engine.ErrNotFound)
	}
}
