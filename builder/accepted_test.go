package builder_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

type said struct {
	Text string `json:"text" validate:"max=5"`
}

// taskOf is the only task of a workflow.
func taskOf[In, Out any](t *testing.T, w builder.Work[In, Out]) *workflow.Task {
	t.Helper()
	b := builder.New[In]("w")
	w.Input = builder.CaseInput(b)
	b.Path(b.Start(), builder.Task(b, "a", w), b.End())
	d, err := b.Build()
	require.NoError(t, err)
	return &d.Tasks[0]
}

// runs gives what the function of a task returns as a worker gets it.
func runs[Out any](t *testing.T, out Out) (spec *workflow.Task, raw json.RawMessage, err error) {
	t.Helper()
	spec = taskOf(t, builder.Work[said, Out]{Run: func(context.Context, said) (Out, error) { return out, nil }})
	raw, err = spec.Run(t.Context(), &activities.Work{Item: &workitem.Item{}})
	return spec, raw, err
}

// What a function returns is encoded as the task accepts it, so that it need not be accepted once more; where that takes reading it again, it
// is left to the worker.
func TestAnOutputIsEncodedAsItIsAccepted(t *testing.T) {
	for _, text := range []string{"", "<é>", "a\xffb", "\ufffd"} {
		spec, raw, err := runs(t, said{text})
		require.NoError(t, err)
		require.True(t, spec.RunAccepts)
		accepted, err := spec.Accept(workitem.Complete, raw)
		require.NoError(t, err)
		require.Equal(t, string(accepted), string(raw))
	}
	_, _, err := runs(t, said{"too long"})
	require.ErrorContains(t, err, "text: max=5")
	var refused *activities.OutputError
	require.True(t, errors.As(err, &refused))

	spec, _, err := runs(t, &said{"x"})
	require.NoError(t, err)
	require.False(t, spec.RunAccepts, "nil has to be refused")
}

// What only a retry policy answers is answered after failures alone.
func TestOnlyFailuresAreAnswered(t *testing.T) {
	policy := retry.Exponential(3, time.Second)
	answer := func(context.Context, *activities.Change) error { return nil }
	require.True(t, taskOf(t, builder.Work[said, any]{Retry: policy}).OnlyFailures)
	require.False(t, taskOf(t, builder.Work[said, any]{Retry: policy, OnWorkItemStateChanged: answer}).OnlyFailures)
	require.False(t, taskOf(t, builder.Work[said, any]{OnWorkItemStateChanged: answer}).OnlyFailures)
	f, err := builder.Func("f", func(context.Context, said) (said, error) { return said{}, nil })
	require.NoError(t, err)
	require.True(t, f.Tasks[0].OnlyFailures)
}
