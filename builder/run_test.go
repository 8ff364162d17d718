package builder_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// running calls the Run of a task as a worker does.
func running(
	ctx context.Context, t *testing.T, limit time.Duration, run func(context.Context, Prompt) (Draft, error),
) (string, *workitem.Failure, error) {
	b := builder.New[Prompt]("w")
	b.Path(b.Start(), builder.Task(b, "a", builder.Work[Prompt, Draft]{
		Input: builder.CaseInput(b), Run: run, RunTimeout: limit,
	}), b.End())
	w, err := b.Build()
	require.NoError(t, err)
	out, err := w.Tasks[0].Run(ctx, &activities.Work{
		Item: &workitem.Item{Task: "a"}, Input: []byte(`{"text":"x"}`), Attempt: 3, Fence: 7,
	})
	return string(out), workitem.FailureOf(err), err
}

func TestRunKnowsItsJob(t *testing.T) {
	out, _, err := running(ctx, t, 0, func(ctx context.Context, p Prompt) (Draft, error) {
		w, ok := builder.WorkFrom(ctx)
		return Draft{Body: fmt.Sprint(p.Text, " ", ok, " ", w.Attempt, " ", w.Fence)}, nil
	})
	require.NoError(t, err)
	require.Equal(t, `{"body":"x true 3 7"}`, out)
	_, ok := builder.WorkFrom(ctx)
	require.False(t, ok)
}

func TestAnErrorOfRunIsAFailure(t *testing.T) {
	cause := errors.New("no luck")
	invalid := domain.Validate(Prompt{})
	for name, c := range map[string]struct {
		err  error
		want workitem.Failure
	}{
		"plain":     {cause, workitem.Failure{Code: "error", Message: "no luck", Retryable: true}},
		"fatal":     {workitem.Fatal(cause), workitem.Failure{Code: "error", Message: "no luck"}},
		"permanent": {retry.Permanent(cause), workitem.Failure{Code: "error", Message: "no luck"}},
		"after": {retry.After(time.Minute, cause),
			workitem.Failure{Code: "error", Message: "no luck", Retryable: true, After: time.Minute}},
		"own": {fmt.Errorf("pay: %w", &workitem.Failure{Code: "no-funds", Message: "empty", After: time.Hour}),
			workitem.Failure{Code: "no-funds", Message: "pay: empty", After: time.Hour}},
		"invalid": {invalid, workitem.Failure{Code: "invalid", Message: "invalid builder_test.Prompt: text: required",
			Details: []byte(`[{"path":"text","rule":"required"}]`), Retryable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			_, f, err := running(ctx, t, 0, func(context.Context, Prompt) (Draft, error) { return Draft{}, c.err })
			require.Equal(t, c.want, *f)
			require.ErrorIs(t, err, c.err, "the error itself is kept")
			require.Equal(t, c.err.Error(), err.Error())
		})
	}
}

func TestAnOutputMustObeyItsRules(t *testing.T) {
	_, f, err := running(ctx, t, 0, func(context.Context, Prompt) (Draft, error) { return Draft{}, nil })
	require.ErrorContains(t, err, "output: invalid builder_test.Draft: body: required")
	require.Equal(t, workitem.CodeInvalid, f.Code)
	require.JSONEq(t, `[{"path":"body","rule":"required"}]`, string(f.Details))
	require.True(t, f.Retryable, "a model may do better next time")
}

func TestAnInputThatCannotBeReadIsNotRetried(t *testing.T) {
	b := builder.New[any]("w")
	b.Path(b.Start(), builder.Task(b, "a", builder.Work[int, any]{
		Items: func(context.Context, *activities.Activation) ([]int, error) { return nil, nil },
		Run:   func(context.Context, int) (any, error) { return nil, nil },
	}), b.End())
	builder.Job(b, "j", func(context.Context, int) error { return nil }, builder.JobOptions{})
	w := b.MustBuild()
	work := &activities.Work{Name: "j", Item: &workitem.Item{Task: "a", Generation: 1, Number: 2}, Input: []byte(`"x"`)}
	_, err := w.Tasks[0].Run(ctx, work)
	require.ErrorContains(t, err, "input of a.1.2: ")
	require.False(t, workitem.FailureOf(err).Retryable)
	err = w.Calls["j"].Run(ctx, work)
	require.ErrorContains(t, err, "payload of job j: ")
	require.False(t, workitem.FailureOf(err).Retryable)
}
