package builder_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// split is a task "s" with flows to a, b and c, which are joined again.
type split struct {
	*builder.Builder[any]
	s       *builder.TaskRef[any, int]
	flows   [3]*builder.FlowRef[int]
	targets [3]*builder.TaskRef[any, any]
}

func newSplit(w builder.Work[any, int]) *split {
	x := &split{Builder: builder.New[any]("w")}
	x.s = builder.Task(x.Builder, "s", w)
	join := x.Routing("join", builder.Routing{Join: builder.Or})
	for i, name := range []string{"a", "b", "c"} {
		x.targets[i] = builder.Task(x.Builder, name, builder.Work[any, any]{})
		x.flows[i] = builder.Flow(x.Builder, x.s, x.targets[i])
		x.Path(x.targets[i], join)
	}
	x.Path(x.Start(), x.s)
	x.Path(join, x.End())
	return x
}

// enabled completes s with the number, and lists the tasks that follow.
func (x *split) enabled(t *testing.T, out int, opts ...workflow.Option) (string, error) {
	w, err := x.Build()
	require.NoError(t, err)
	m := newProcess(w)
	defer m.close()
	_, err = w.Start(ctx, m, nil)
	require.NoError(t, err)
	if err := doing(m, x.s, out, opts...); err != nil {
		require.NotNil(t, m.item("s"), "the command is rolled back")
		return "", err
	}
	found := ""
	for _, target := range x.targets {
		if m.item(target.Name()) != nil {
			found += target.Name()
		}
	}
	return found, nil
}

func below(limit int) func(int) bool { return func(n int) bool { return n < limit } }

func TestAnXorSplitTakesTheFirstFlowThatIsTrue(t *testing.T) {
	x := newSplit(builder.Work[any, int]{Split: builder.Xor})
	x.flows[0].Otherwise()
	x.flows[1].When(below(10))
	x.flows[2].When(below(100))
	for out, want := range map[int]string{5: "b", 50: "c", 500: "a"} {
		got, err := x.enabled(t, out)
		require.NoError(t, err)
		require.Equal(t, want, got, out)
	}
	got, err := x.enabled(t, 5, workflow.Route("a"))
	require.NoError(t, err)
	require.Equal(t, "a", got, "whoever completes the item may always choose")
}

func TestAnOrSplitTakesEveryFlowThatIsTrue(t *testing.T) {
	x := newSplit(builder.Work[any, int]{Split: builder.Or})
	x.flows[0].When(below(10))
	x.flows[1].Otherwise()
	x.flows[2].When(below(100))
	for out, want := range map[int]string{5: "ac", 50: "c", 500: "b"} {
		got, err := x.enabled(t, out)
		require.NoError(t, err)
		require.Equal(t, want, got, out)
	}
}

func TestASplitOfATaskWithoutOutputTakesTheFlowForIt(t *testing.T) {
	for _, rule := range []builder.Rule{builder.Xor, builder.Or} {
		x := newSplit(builder.Work[any, int]{Split: rule})
		x.flows[0].When(below(10))
		x.flows[1].Otherwise()
		x.flows[2].WithoutOutput()
		for out, want := range map[int]string{5: "a", 50: "b"} {
			got, err := x.enabled(t, out)
			require.NoError(t, err)
			require.Equal(t, want, got, out)
		}
		w := x.MustBuild()
		m := newProcess(w)
		defer m.close()
		_, err := w.Start(ctx, m, nil)
		require.NoError(t, err)
		require.NoError(t, x.s.Cancel(ctx, m, m.item("s").ID, nil))
		require.Nil(t, m.item("a"))
		require.Nil(t, m.item("b"))
		require.NotNil(t, m.item("c"), "the condition that reads the output is not asked")
	}
}

func TestASplitWithoutAWayIsAnError(t *testing.T) {
	x := newSplit(builder.Work[any, int]{Split: builder.Xor})
	broken := errors.New("broken")
	for i := range x.flows {
		x.flows[i].When(below(10))
	}
	_, err := x.enabled(t, 10)
	require.ErrorContains(t, err, "no flow of the xor-split of task s can be taken: no condition of s->a, s->b, s->c is true")

	x = newSplit(builder.Work[any, int]{Split: builder.Or})
	x.flows[0].When(below(10))
	x.flows[1].If(builder.From(func(context.Context, *activities.Activation) (bool, error) { return false, broken }))
	x.flows[2].Otherwise()
	_, err = x.enabled(t, 5)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "condition of flow s->b (route_test.go:")
}

func TestARouteFunctionOrTheCallerChooses(t *testing.T) {
	x := newSplit(builder.Work[any, int]{Split: builder.Or, Route: func(
		context.Context, *activities.Activation) ([]string, error) {
		return []string{"c", "b"}, nil
	}})
	got, err := x.enabled(t, 1)
	require.NoError(t, err)
	require.Equal(t, "bc", got)

	x = newSplit(builder.Work[any, int]{Split: builder.Xor, RouteByCaller: true})
	got, err = x.enabled(t, 1, workflow.Route("c"))
	require.NoError(t, err)
	require.Equal(t, "c", got)
	_, err = x.enabled(t, 1)
	require.ErrorContains(t, err, "the caller that completes task s must choose among its flows (s->a, s->b, s->c)")
	_, err = x.enabled(t, 1, workflow.Route())
	require.Error(t, err, "no flow at all is a choice too, and a wrong one")
}

func TestPredicatesAndSourcesNeedAnOutput(t *testing.T) {
	b := builder.New[any]("w")
	never := builder.Task(b, "never", builder.Work[any, Draft]{})
	s := b.Routing("s", builder.Routing{Split: builder.Xor})
	b.Path(b.Start(), s, b.End())
	b.Path(s, never, b.End())
	builder.Flow(b, s, b.End()).If(builder.Map(builder.Output(never), func(Draft) bool { return true }))
	builder.Flow(b, s, never).Otherwise()
	_, err := b.Build()
	require.ErrorContains(t, err, `no-output: the condition of flow "s->end" is the output of "never"`)
}

func TestSourcesReadTheCase(t *testing.T) {
	b := builder.New[Prompt]("w")
	first := builder.Task(b, "first", builder.Work[Prompt, any]{Input: builder.CaseInput(b)})
	second := builder.Task(b, "second", builder.Work[Draft, any]{
		Input: builder.From(func(_ context.Context, a *activities.Activation) (Draft, error) {
			p, err := builder.CaseInputOf[Prompt](a.Case())
			if err != nil {
				return Draft{}, err
			}
			said, err := builder.OutputOf(first, a.Case())
			return Draft{Body: p.Text + " " + toText(said)}, err
		}),
	})
	third := builder.Task(b, "third", builder.Work[any, any]{Input: builder.Output(second)})
	b.Path(b.Start(), first, second, third, b.End())
	b.Result(builder.CaseInput(b))
	w := b.MustBuild()
	m := newProcess(w)
	defer m.close()
	_, err := w.Start(ctx, m, Prompt{Text: "x"})
	require.NoError(t, err)
	require.NoError(t, doing(m, first, any("y")))
	require.Equal(t, "w started, second.1.1 initialized {\"body\":\"x y\"}\n", m.show())
	require.NoError(t, doing(m, second, nil), "nothing is an output of type any")
	require.Equal(t, "w started, third.1.1 initialized \n", m.show())
	require.NoError(t, doing(m, third, nil))
	require.Equal(t, "w completed, gave {\"text\":\"x\"}\n", m.show())
}

func toText(v any) string {
	s, _ := v.(string)
	return s
}

func TestRegionsAndConditions(t *testing.T) {
	b := builder.New[any]("w")
	wait := b.Condition("wait")
	yes := builder.Task(b, "yes", builder.Work[any, any]{})
	no := builder.Task(b, "no", builder.Work[any, any]{})
	side := builder.Task(b, "side", builder.Work[any, any]{})
	fork := b.Routing("fork", builder.Routing{Split: builder.And})
	join := b.Routing("join", builder.Routing{Join: builder.Xor})
	b.Path(b.Start(), fork, wait, yes, join, b.End())
	b.Path(wait, no, join)
	flow := builder.Flow(b, fork, side)
	b.Path(side, join)
	b.Cancels(yes, side, flow)
	b.Cancels(yes, side, wait)
	b.Cancels(no, side)
	b.Cancels(side, wait, yes, no)
	w := b.MustBuild()
	require.Equal(t, []string{"side", "fork->side", "wait"}, w.Net.Definition().Tasks[0].Cancels)
	m := newProcess(w)
	defer m.close()
	_, err := w.Start(ctx, m, nil)
	require.NoError(t, err)
	require.NoError(t, doing(m, yes, nil))
	states := map[string]workitem.State{}
	for _, it := range m.root().Items.Slice() {
		states[it.Task] = it.State
	}
	require.Equal(t, map[string]workitem.State{
		"yes": workitem.Completed, "no": workitem.Canceled, "side": workitem.Canceled}, states)
}
