package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// weighing is a child workflow whose result is a number.
func weighing(t *testing.T, name string) (*builder.Workflow[string], *builder.ResultRef[string, int]) {
	t.Helper()
	b := builder.New[string](name)
	weigh := builder.Task(b, "weigh", builder.Work[string, int]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), weigh, b.End())
	grams := builder.Result(b, builder.Output(weigh))
	return b.MustBuild(), grams
}

// A parent reads what its child cases gave, in the order of their creation: as the input of a task, and as what a split
// decides by. A child that failed gave nothing.
func TestAParentReadsWhatItsChildrenGave(t *testing.T) {
	parcel, grams := weighing(t, "parcel")
	b := builder.New[[]string]("order")
	ship := builder.Composite(b, "ship", parcel, builder.Cases[string]{
		Items: func(_ context.Context, a *activities.Activation) ([]string, error) {
			return builder.CaseInputOf[[]string](a.Case())
		},
		Policy: workitem.ContinueOnFailure(), Split: builder.Xor,
	})
	all := builder.ChildOutputs(ship, grams)
	letter := builder.Task(b, "letter", builder.Work[[]int, any]{Input: all})
	pallet := builder.Task(b, "pallet", builder.Work[[]int, any]{Input: all})
	builder.Flow(b, ship, letter).If(builder.Map(all, func(g []int) bool { return len(g) < 2 }))
	builder.Flow(b, ship, pallet).Otherwise()
	b.Path(b.Start(), ship)
	b.Path(letter, b.End())
	b.Path(pallet, b.End())
	e := enginetest.New(t, b.MustBuild())

	for want, lost := range map[string]int{"pallet": 1, "letter": 2} {
		id := start(t, e, b.MustBuild(), []string{"a", "b", "c"})
		children := childrenOf(t, e, id)
		for i := len(children) - 1; i >= 0; i-- { // they end in another order than they began
			if i < lost {
				e.FailItem(children[i], "weigh", nil)
				continue
			}
			enginetest.CompleteItem(e, children[i], "weigh", 100*i)
		}
		it := e.Item(id, want)
		require.JSONEq(t, map[string]string{"pallet": "[100,200]", "letter": "[200]"}[want], string(it.Input))
	}
}

func childrenOf(t *testing.T, e *enginetest.Engine, id workitem.CaseID) []workitem.CaseID {
	t.Helper()
	tree, err := store.TreeOf(t.Context(), e, id)
	require.NoError(t, err)
	return tree.Case(id).Children
}

// One child case gives one value. In a loop it is the value of the latest round, also after a crash.
func TestAParentReadsTheOneChildOfTheLatestRound(t *testing.T) {
	parcel, grams := weighing(t, "parcel")
	b := builder.New[any]("order")
	ship := builder.Composite(b, "ship", parcel, builder.Cases[string]{
		Input: builder.From(func(context.Context, *activities.Activation) (string, error) { return "a", nil }), Join: builder.Xor,
	})
	check := builder.Task(b, "check", builder.Work[int, any]{
		Input: builder.ChildOutput(ship, grams), Split: builder.Xor, RouteByCaller: true,
	})
	b.Path(b.Start(), ship, check, b.End())
	b.Path(check, ship)
	total := builder.Result(b, builder.ChildOutput(ship, grams))
	e := enginetest.New(t, b.MustBuild())
	run, err := total.Run(t.Context(), e, nil)
	require.NoError(t, err)
	for round, route := range []string{"ship", "ship", "end"} {
		children := childrenOf(t, e, run.ID)
		enginetest.CompleteItem(e, children[len(children)-1], "weigh", 7+round)
		require.Equal(t, string(rune('7'+round)), string(e.Item(run.ID, "check").Input))
		e.Crash()
		enginetest.CompleteItem[any](e, run.ID, "check", nil, workflow.Route(route))
	}
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 9, got)
}

// Reading the one output of several children is an error, which rolls the command back.
func TestOneOutputOfSeveralChildrenIsAnError(t *testing.T) {
	parcel, grams := weighing(t, "parcel")
	b := builder.New[any]("order")
	ship := builder.Composite(b, "ship", parcel, builder.Cases[string]{
		Items: func(context.Context, *activities.Activation) ([]string, error) { return []string{"a", "b"}, nil },
	})
	check := builder.Task(b, "check", builder.Work[int, any]{Input: builder.ChildOutput(ship, grams)})
	b.Path(b.Start(), ship, check, b.End())
	e := enginetest.New(t, b.MustBuild())
	id := start[any](t, e, b.MustBuild(), nil)
	children := childrenOf(t, e, id)
	enginetest.CompleteItem(e, children[0], "weigh", 1)
	last := e.StartItem(children[1], "weigh")
	err := enginetest.Do(t.Context(), e, workflow.Act(last.ID, workitem.Complete, json.RawMessage("2")))
	require.ErrorContains(t, err, "2 child cases of parcel have completed in composite task ship")
	require.Equal(t, workitem.Started, e.Item(children[1], "weigh").State, "nothing has happened")
}

// The result that is read must be that of a workflow which the task runs.
func TestTheOutputsOfAnotherWorkflowAreAProblem(t *testing.T) {
	parcel, _ := weighing(t, "parcel")
	_, other := weighing(t, "other")
	b := builder.New[any]("order")
	ship := builder.Composite(b, "ship", parcel, builder.Cases[string]{})
	b.Path(b.Start(), ship, builder.Task(b, "check", builder.Work[[]int, any]{Input: builder.ChildOutputs(ship, other)}), b.End())
	_, err := b.Build()
	require.ErrorContains(t, err, `the outputs of composite task "ship" are read as those of workflow "other"`)
}

// Every workflow has handles of its runs: with a typed result if it says what that is, with JSON otherwise.
func TestEveryWorkflowHasRuns(t *testing.T) {
	w, grams := weighing(t, "parcel")
	e := enginetest.New(t, w)
	run, err := grams.Run(t.Context(), e, "a", workflow.Key("one"))
	require.NoError(t, err)
	again, err := grams.Run(t.Context(), e, "a", workflow.Key("one"))
	require.NoError(t, err)
	require.Equal(t, run, again)
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunWaiting, s.State, "for a person")
	enginetest.CompleteItem(e, run.ID, "weigh", 250)
	got, err := grams.Of(run.ID).Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 250, got)
	raw, err := w.Of(run.ID).Result(t.Context(), e)
	require.NoError(t, err)
	require.JSONEq(t, "250", string(raw))

	untyped, err := w.Run(t.Context(), e, "b")
	require.NoError(t, err)
	done, err := untyped.Cancel(t.Context(), e, nil)
	require.NoError(t, err)
	require.True(t, done)
	_, err = untyped.Result(t.Context(), e)
	require.ErrorIs(t, err, builder.ErrCanceled)
	later, err := grams.Run(t.Context(), e, "c", workflow.After(1e9))
	require.NoError(t, err)
	s, err = later.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunScheduled, s.State)

	var tx builder.Run[int]
	require.NoError(t, e.Update(t.Context(), func(x *engine.Tx) (err error) {
		tx, err = grams.Run(t.Context(), x, "d")
		return err
	}))
	c, err := e.Case(t.Context(), tx.ID)
	require.NoError(t, err)
	require.Equal(t, state.CaseStarted, c.State)
}
