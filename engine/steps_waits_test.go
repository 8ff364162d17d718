package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func TestParallelWaitsTakeOneEventEach(t *testing.T) {
	w, _ := function(t, "pair", func(ctx context.Context, _ int) ([]int, error) {
		return step.Map(ctx, []int{0, 1, 2}, 0, func(ctx context.Context, i, _ int) (int, error) {
			return step.Await[int](ctx, "number", step.Named(fmt.Sprint("number ", i)))
		})
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	for i := range 3 {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "number", 10+i)))
	}
	e.Drain()
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	var got []int
	require.NoError(t, json.Unmarshal(c.Output, &got))
	require.ElementsMatch(t, []int{10, 11, 12}, got, "which branch came first is its own affair")
}

// Everything that ends at the same moment has the function continue once.
func TestWaitsThatEndTogetherContinueOnce(t *testing.T) {
	var did tally
	w, _ := function(t, "together", func(ctx context.Context, _ int) (int, error) {
		_, err := step.Map(ctx, []int{0, 1, 2, 3}, 0, func(ctx context.Context, i, _ int) (int, error) {
			return i, step.Sleep(ctx, fmt.Sprint("nap ", i), time.Minute)
		})
		if err != nil {
			return 0, err
		}
		return step.Do(ctx, "after", func(context.Context) (int, error) { return did.add("after"), nil })
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	e.Advance(time.Minute)
	require.Equal(t, "completed: 1", outcome(t, e, id))
	require.Equal(t, 1, did.of("after"))
}

// An event that comes at the very moment of the deadline: one of the two decides, and the same one on every replay.
func TestAnEventAtTheDeadline(t *testing.T) {
	race, _ := function(t, "race", func(ctx context.Context, _ int) (string, error) {
		got, err := step.Await[string](ctx, "e", step.Timeout(time.Second))
		if errors.Is(err, step.ErrTimeout) {
			got, err = "timeout", nil
		}
		if err != nil {
			return "", err
		}
		if err := step.Sleep(ctx, "think", time.Second); err != nil {
			return "", err
		}
		return got, nil
	})
	e := enginetest.New(t, race)
	for i := range 100 {
		id := start(t, e, race, i)
		if i%2 == 0 {
			e.Clock().Set(e.Clock().Now().Add(time.Second)) // the job is due, and has not been claimed
		}
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "e", "event")))
		e.Drain()
		steps := stepsOf(t, e, store.StepFilter{Case: id, Kind: workitem.StepEvent})
		require.Len(t, steps, 1)
		want := "timeout"
		if steps[0].State == workitem.StepDone {
			want = "event"
		}
		e.Advance(2 * time.Second)
		require.Equal(t, fmt.Sprintf("completed: %q", want), outcome(t, e, id))
	}
}

func TestCallReturnsResultOfChild(t *testing.T) {
	zero, _ := function(t, "zero", func(_ context.Context, kind string) (any, error) {
		return map[string]any{"number": 0, "bool": false, "text": "", "null": nil}[kind], nil
	})
	parent, _ := function(t, "parent", func(ctx context.Context, _ int) (string, error) {
		var out string
		n, err := step.Call[int](ctx, "number", "zero", "number")
		if err != nil {
			return "", err
		}
		b, err := step.Call[bool](ctx, "bool", "zero", "bool")
		if err != nil {
			return "", err
		}
		s, err := step.Call[string](ctx, "text", "zero", "text")
		if err != nil {
			return "", err
		}
		p, err := step.Call[*int](ctx, "null", "zero", "null")
		out = fmt.Sprintf("%d %t %q %v", n, b, s, p)
		return out, err
	})
	e := enginetest.New(t, zero, parent)
	id := start(t, e, parent, 0)
	require.Equal(t, `completed: "0 false \"\" <nil>"`, outcome(t, e, id))
}

// A child that takes too long is canceled, and another one can be called in the same run.
func TestAChildThatTakesTooLongLeavesTheParentFree(t *testing.T) {
	child, _ := function(t, "slow", func(ctx context.Context, seconds int) (string, error) {
		return "done", step.Sleep(ctx, "nap", time.Duration(seconds)*time.Second)
	})
	parent, _ := function(t, "parent", func(ctx context.Context, _ int) (string, error) {
		_, err := step.Call[string](ctx, "first", "slow", 100, step.Timeout(10*time.Second))
		if !errors.Is(err, step.ErrTimeout) {
			return "", err
		}
		return step.Call[string](ctx, "second", "slow", 5)
	})
	e := enginetest.New(t, child, parent)
	id := start(t, e, parent, 0)
	e.Advance(10 * time.Second)
	e.Advance(5 * time.Second)
	require.Equal(t, `completed: "done"`, outcome(t, e, id))
	tree, err := store.TreeOf(t.Context(), e, id)
	require.NoError(t, err)
	states := map[state.CaseState]int{}
	tree.Each(func(c *state.Case) { states[c.State]++ })
	require.Equal(t, map[state.CaseState]int{state.CaseCompleted: 2, state.CaseCanceled: 1}, states)
}

func TestAChildThatCannotBeStartedIsAnError(t *testing.T) {
	type order struct {
		N int `json:"n" validate:"gt=0"`
	}
	child, _ := function(t, "child", func(context.Context, order) (int, error) { return 0, nil })
	parent, _ := function(t, "parent", func(ctx context.Context, name string) (string, error) {
		_, err := step.Call[int](ctx, "call", name, map[string]int{"n": 0})
		var failed *step.ChildError
		if !errors.As(err, &failed) {
			return "", fmt.Errorf("want a failed child, and got %w", err)
		}
		return failed.Failure.String(), nil
	})
	e := enginetest.New(t, child, parent)
	require.Contains(t, outcome(t, e, start(t, e, parent, "child")), "invalid: start workflow child: invalid engine_test.order: n: gt=0")
	require.Contains(t, outcome(t, e, start(t, e, parent, "chld")), `unknown-workflow: unknown workflow: \"chld\"; pass it to the engine`)
}

// Events are refused where no one can ever take them, and an event is no other case's.
func TestEventsOfOthers(t *testing.T) {
	w, _ := function(t, "waiter", func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "e") })
	e := enginetest.New(t, w)
	a, b := start(t, e, w, 0), start(t, e, w, 0)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(a, "e", 1)))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(b, "other", 2)), "another name is kept for who asks for it")
	e.Drain()
	require.Equal(t, "completed: 1", outcome(t, e, a))
	require.Equal(t, "started", outcome(t, e, b))
	require.Error(t, enginetest.Do(t.Context(), e, workflow.Send(b, "", 1)))
	require.Error(t, enginetest.Do(t.Context(), e, workflow.Send(b, "e", make(chan int))))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Send(b, "e", 1, workflow.Key("k"))), nil)
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Send(a, "e", 1, workflow.Key("k"))), engine.ErrKeyReused)
}

// What a transaction sends and starts is there with the rest of it, or not at all.
func TestEventsInATransaction(t *testing.T) {
	w, _ := function(t, "waiter", func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "e") })
	sub, _ := function(t, "subscriber", func(context.Context, int) (int, error) { return 0, nil }, builder.On("topic"))
	e := enginetest.New(t, w, sub)
	id := start(t, e, w, 0)
	stop := errors.New("stop")
	err := e.Update(t.Context(), func(tx *engine.Tx) error {
		if err := enginetest.Do(t.Context(), tx, workflow.Send(id, "e", 1)); err != nil {
			return err
		}
		if n, err := broadcast(t.Context(), tx, "topic", 1); err != nil || n != 1 {
			return fmt.Errorf("reached %d: %w", n, err)
		}
		return stop
	})
	require.ErrorIs(t, err, stop)
	e.Drain()
	require.Equal(t, "started", outcome(t, e, id))
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := broadcast(t.Context(), tx, "topic", 1)
		return errors.Join(err, enginetest.Do(t.Context(), tx, workflow.Send(id, "e", 1)))
	}))
	e.Drain()
	require.Equal(t, "completed: 1", outcome(t, e, id))
	n := 0
	for range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: "subscriber"}) {
		n++
	}
	require.Equal(t, 1, n)
}
