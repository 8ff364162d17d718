package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// shop is a program of a version: an order, and a function that orders, have parts of a workflow that is the same in all versions. made
// counts the parts that it made.
type shop struct {
	made      atomic.Int32
	workflows []engine.Workflow
}

func newShop(version string, opts ...builder.FuncOption) *shop {
	s := new(shop)
	part := builder.MustFunc("part", func(_ context.Context, n int) (int, error) {
		s.made.Add(1)
		return n + 1, nil
	}, opts...)
	order := builder.New[int]("order", builder.Version(version))
	parts := builder.Composite(order, "parts", part.Workflow, builder.Cases[int]{Input: builder.CaseInput(order)})
	pack := builder.Task(order, "pack", builder.Work[any, string]{Run: func(context.Context, any) (string, error) { return version, nil }})
	order.Path(order.Start(), parts, pack, order.End())
	order.Result(builder.Output(pack))
	call := builder.MustFunc("call", func(ctx context.Context, n int) (int, error) { return step.Call[int](ctx, "part", "part", n) },
		builder.Version(version))
	s.workflows = []engine.Workflow{part, order.MustBuild(), call}
	return s
}

// The end of a child case continues its parent. So a program that has the definition of the child only does not begin its work: it could not
// store the result. It says which definition it lacks, and the program that has both continues.
func TestTheWorkOfAChildNeedsTheDefinitionOfItsParent(t *testing.T) {
	for name, opener := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(t *testing.T) store.Opener { return sqlite.File(t.TempDir() + "/parts.db") },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(prepared.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second, third := newShop("1"), newShop("2"), newShop("1")
			o := opener(t)
			idle, err := engine.Config{Workers: -1, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), o, first.workflows...)
			require.NoError(t, err)
			id := startOn(t, idle, "order", `1`)
			require.NoError(t, idle.Close())

			e := enginetest.Open(t, o, engine.Config{}, second.workflows...)
			require.Equal(t, "completed: 6", ends(t, e.Engine, startOn(t, e.Engine, "part", `5`)))
			e.Advance(time.Hour)
			require.Equal(t, int32(1), second.made.Load(), "it makes parts of cases that it knows only")
			answer, err := e.Why(t.Context(), id)
			require.NoError(t, err)
			require.Contains(t, answer.String(), "no open engine has workflow order version 1 of case "+id.String()+" above")

			e.Crash(third.workflows...)
			e.Drain()
			require.Equal(t, `completed: "1"`, ends(t, e.Engine, id))
			require.Equal(t, int32(1), third.made.Load())
		})
	}
}

// In a fleet the work of a child waits for an engine that has the definitions of the child and of its parents.
func TestTheWorkOfAChildGoesToAnEngineWithItsParent(t *testing.T) {
	f := newFleet(t)
	idle, second, third := newShop("1"), newShop("2"), newShop("1")
	old := f.open(engine.Config{Workers: -1}, idle.workflows...)
	id, part := startOn(t, old, "order", `1`), startOn(t, old, "part", `5`)
	next := f.open(engine.Config{}, second.workflows...)
	require.Equal(t, "completed: 6", ends(t, next, part)) // it came later than the part of the order
	require.Equal(t, int32(1), second.made.Load())

	answer, err := next.Why(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, answer.Waits, 1)
	require.Empty(t, answer.Waits[0].Blocked, "the old program has the definition")
	notLoaded := func() (found []why.StrandedCase) { // on a slow machine the work has no worker for long enough to be found for that
		for _, s := range stranded(t, next) {
			if s.Cause == why.CauseNotLoaded {
				found = append(found, s)
			}
		}
		return found
	}
	require.Empty(t, notLoaded(), "the old program has the definition")
	require.Empty(t, unserved(t, next))
	known := func() (known bool) { // to a process without an engine
		require.NoError(t, next.View(t.Context(), func(r store.Reader) error {
			here, err := why.Here{}.WithFleet(t.Context(), r)
			known = err == nil && !here.Opened.IsZero() && here.Known(idle.workflows[1].Untyped().Fingerprint)
			return err
		}))
		return known
	}
	require.True(t, known())
	require.NoError(t, old.Close())
	require.False(t, known())
	answer, err = next.Why(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, answer.Waits, 1)
	require.Equal(t, why.NotLoaded, answer.Waits[0].Blocked)
	require.Equal(t, &why.Missing{Case: id, Workflow: "order", Version: "1"}, answer.Waits[0].Missing)
	require.Contains(t, answer.String(), "no open engine has workflow order version 1 of case "+id.String()+" above")
	require.NotEmpty(t, notLoaded())
	require.Contains(t, notLoaded()[0].Repair, "open an engine with workflow order version 1")

	again := f.open(engine.Config{}, third.workflows...)
	require.Equal(t, `completed: "1"`, ends(t, next, id))
	require.Equal(t, int32(1), second.made.Load())
	require.Equal(t, int32(1), third.made.Load())
	require.NoError(t, again.Close())
}

// stranded lists what nothing will continue, as an engine sees it.
func stranded(t *testing.T, e *engine.Engine) (list []why.StrandedCase) {
	t.Helper()
	for s, err := range why.Stranded(t.Context(), e, why.Search{Here: e.Here(), Now: e.Now()}) {
		require.NoError(t, err)
		list = append(list, s)
	}
	return list
}

// A case that a step has started needs its own definition only: its end wakes the function, which continues where its definition is.
func TestTheWorkOfACaseOfAStepNeedsNoOtherDefinition(t *testing.T) {
	f := newFleet(t)
	first, second := newShop("1", builder.OnQueue("parts")), newShop("2", builder.OnQueue("parts"))
	old := f.open(engine.Config{Queues: map[string]int{"parts": -1}}, first.workflows...)
	id := startOn(t, old, "call", `7`)
	f.open(engine.Config{}, second.workflows...)
	require.Equal(t, "completed: 8", ends(t, old, id))
	require.Zero(t, first.made.Load())
	require.Equal(t, int32(1), second.made.Load())
}
