package builder_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workitem"
)

// review is a draft that is reviewed and published.
type review struct {
	*builder.Builder[any]
	draft   *builder.TaskRef[any, Draft]
	publish *builder.TaskRef[Draft, any]
}

func newReview(w builder.Work[any, Draft], opts ...builder.Option) *review {
	x := &review{Builder: builder.New[any]("w", opts...)}
	x.draft = builder.Task(x.Builder, "draft", w)
	x.publish = builder.Task(x.Builder, "publish", builder.Work[Draft, any]{Input: builder.Output(x.draft)})
	x.Path(x.Start(), x.draft, x.publish, x.End())
	return x
}

// noOutput is the finding that a definition is refused for.
func noOutput(t *testing.T, err error) *builder.UnsoundError {
	t.Helper()
	unsound, ok := errors.AsType[*builder.UnsoundError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, builder.NoOutput, unsound.Code)
	return unsound
}

func TestATaskThatCanCompleteWithoutOutputIsNoSourceOfAnInput(t *testing.T) {
	own := workitem.NewPolicy("mine", func(workitem.Outcome) (workitem.Verdict, error) { return workitem.CompleteTask, nil })
	for name, w := range map[string]builder.Work[any, Draft]{
		"canceled in time":   {CancelAfter: time.Hour},
		"task canceled":      {Timers: []activities.Timer{activities.CancelTaskAfter(time.Hour)}},
		"continue":           {Policy: workitem.ContinueOnFailure()},
		"threshold":          {Policy: workitem.Threshold(1)},
		"a policy of theirs": {Policy: own},
	} {
		_, err := newReview(w).Build()
		f := noOutput(t, err)
		require.Equal(t, "publish", f.Subject, name)
		require.Equal(t, "draft; then draft->publish 1", f.Witness.String(), name)
		require.Regexp(t, `missing_test.go:\d+: no-output: .*"draft".*\(missing_test.go:\d+\)`, err.Error(), "both lines")
		require.ErrorContains(t, err, "builder.OptionalOutput")
	}
	for name, w := range map[string]builder.Work[any, Draft]{
		"person": {}, "timeout": {Timeout: time.Hour}, "all": {Policy: workitem.All(), CancelAfter: time.Hour},
		"quorum": {Policy: workitem.Quorum(1), CancelAfter: time.Hour}, "threshold 0": {Policy: workitem.Threshold(0)},
	} {
		w, err := newReview(w).Build()
		require.NoError(t, err, name)
		require.Empty(t, w.Warnings(), name)
	}
}

// Where the split sends a completion without output another way, what reads it is not reached.
func TestAFlowWithoutOutputSeparatesReaders(t *testing.T) {
	build := func(without bool) error {
		b := builder.New[any]("w")
		draft := builder.Task(b, "draft", builder.Work[any, Draft]{CancelAfter: time.Hour, Split: builder.Xor})
		publish := builder.Task(b, "publish", builder.Work[Draft, any]{Input: builder.Output(draft)})
		file := builder.Task(b, "file", builder.Work[Draft, any]{Input: builder.Output(draft)})
		b.Path(b.Start(), draft)
		b.Path(publish, b.End())
		b.Path(file, b.End())
		builder.Flow(b, draft, publish).When(func(d Draft) bool { return d.Body != "" })
		builder.Flow(b, draft, file).Otherwise()
		if without {
			builder.Flow(b, draft, b.End()).WithoutOutput()
		}
		return build(b)
	}
	require.NoError(t, build(true))
	text := build(false).Error()
	require.Contains(t, text, `the condition of flow "draft->publish" is the output of "draft"`)
	require.Contains(t, text, `the input of task "file" is the output of "draft"`)
}

// A flow that a policy never lets the split take is refused.
func TestAFlowWithoutOutputThatIsNeverTaken(t *testing.T) {
	build := func(p workitem.Policy) error {
		b := builder.New[any]("w")
		draft := builder.Task(b, "draft", builder.Work[any, Draft]{CancelAfter: time.Hour, Split: builder.Xor, Policy: p})
		boss := builder.Task(b, "boss", builder.Work[any, any]{})
		stop := b.Routing("stop", builder.Routing{Join: builder.Xor})
		b.Path(b.Start(), draft)
		b.Path(boss, stop, b.End())
		builder.Flow(b, draft, stop).Otherwise()
		builder.Flow(b, draft, boss).WithoutOutput()
		return build(b)
	}
	for _, p := range []workitem.Policy{{}, workitem.ContinueOnFailure(), workitem.Threshold(1)} {
		require.NoError(t, build(p), p.Name())
	}
	for _, p := range []workitem.Policy{workitem.All(), workitem.Quorum(2), workitem.Incident(workitem.Quorum(2))} {
		err := build(p)
		require.ErrorContains(t, err, `stray-route: flow "draft->boss" is WithoutOutput, but with the policy "`+p.Name()+`" task "draft" fails`)
	}
}

// An input that only one of two ways to its task gives is refused, with the other way.
func TestAnInputThatMayBeSkipped(t *testing.T) {
	build := func(join builder.Rule, optional bool, opts ...builder.Option) (*builder.Workflow[any], error) {
		b := builder.New[any]("w", opts...)
		ask := builder.Task(b, "ask", builder.Work[any, any]{Split: join, RouteByCaller: join == builder.Xor})
		draft := builder.Task(b, "draft", builder.Work[any, []string]{})
		check := builder.Task(b, "check", builder.Work[any, any]{})
		var print builder.Node = builder.Task(b, "print", builder.Work[[]string, any]{Input: builder.Output(draft), Join: join})
		if optional {
			print = builder.Task(b, "maybe", builder.Work[builder.Optional[[]string], any]{
				Input: builder.OptionalOutput(draft), Join: join})
		}
		b.Path(b.Start(), ask, draft, print, b.End())
		b.Path(ask, check, print)
		return b.Build()
	}
	_, err := build(builder.And, false)
	require.NoError(t, err, "print waits for both")
	_, err = build(builder.Xor, false)
	require.Equal(t, "ask to check; check; then check->print 1", noOutput(t, err).Witness.String())
	w, err := build(builder.Xor, false, builder.AllowUnsound(builder.NoOutput))
	require.NoError(t, err)
	require.Equal(t, []net.Code{builder.NoOutput}, w.Verification.Allowed)
}

// A case that comes to a reader without the output fails with a code of its own: it does not stay open, and the command
// that led there is not undone.
func TestACaseThatMissesAnOutputFails(t *testing.T) {
	readers := map[string]func(b *builder.Builder[any], draft *builder.TaskRef[any, Draft]){
		"input": func(b *builder.Builder[any], draft *builder.TaskRef[any, Draft]) {
			b.Path(draft, builder.Task(b, "print", builder.Work[Draft, any]{Input: builder.Output(draft)}), b.End())
		},
		"flow": func(b *builder.Builder[any], draft *builder.TaskRef[any, Draft]) {
			next := builder.Task(b, "next", builder.Work[any, any]{})
			builder.Flow(b, draft, next).When(func(Draft) bool { return true })
			builder.Flow(b, draft, b.End()).Otherwise()
			b.Path(next, b.End())
		},
		"code": func(b *builder.Builder[any], draft *builder.TaskRef[any, Draft]) {
			print := builder.Task(b, "print", builder.Work[Draft, any]{Input: builder.From(
				func(_ context.Context, a *activities.Activation) (Draft, error) {
					return builder.OutputOf(draft, a.Case())
				})})
			b.Path(draft, print, b.End())
		},
		"result": func(b *builder.Builder[any], draft *builder.TaskRef[any, Draft]) {
			b.Path(draft, b.End())
			b.Result(builder.Output(draft))
		},
	}
	for name, read := range readers {
		t.Run(name, func(t *testing.T) {
			b := builder.New[any]("w")
			draft := builder.Task(b, "draft", builder.Work[any, Draft]{Split: builder.Xor})
			b.Path(b.Start(), draft)
			read(b, draft)
			w := b.MustBuild() // that a person cancels an item is not seen in the definition
			m := newProcess(w)
			defer m.close()
			_, err := w.Start(t.Context(), m, nil)
			require.NoError(t, err)
			require.NoError(t, draft.Cancel(t.Context(), m, m.item("draft").ID, nil))
			c := m.root()
			require.Equal(t, "failed", c.State.String())
			require.Equal(t, workitem.CodeNoOutput, c.Failure.Code)
			require.Contains(t, c.Failure.Message, "task draft of case")
		})
	}
}

// A CaseInfo of a test's own, or one that was kept, may know no outputs: that is an error, as a missing output is.
func TestTheOutputsOfACaseInfoMayBeUnknown(t *testing.T) {
	b := builder.New[string]("unknown")
	draft := builder.Task(b, "draft", builder.Work[string, string]{Input: builder.CaseInput(b)})
	_, err := builder.OutputOf(draft, activities.CaseInfo{Workflow: "unknown"})
	require.ErrorContains(t, err, "output of task draft")
	_, err = builder.OptionalOutputOf(draft, activities.CaseInfo{Workflow: "unknown"})
	require.ErrorContains(t, err, "CaseInfo.Outputs is nil")
}
