package builder_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// retried is a workflow of one task whose work fails twice.
func retried(p retry.Policy, answer func(context.Context, *activities.Change) error) (*builder.Workflow[int], error) {
	tries := 0
	b := builder.New[int]("retried")
	work := builder.Task(b, "work", builder.Work[int, int]{
		Input: builder.CaseInput(b),
		Run: func(_ context.Context, n int) (int, error) {
			if tries++; tries < 3 {
				return 0, errors.New("busy")
			}
			return n * tries, nil
		},
		Retry: p, OnWorkItemStateChanged: answer,
	})
	b.Path(b.Start(), work, b.End())
	b.Result(builder.Output(work))
	return b.Build()
}

func TestThePolicyOfATaskMakesFreshItems(t *testing.T) {
	changes := 0
	w, err := retried(retry.Exponential(3, time.Second), func(context.Context, *activities.Change) error {
		changes++
		return nil
	})
	require.NoError(t, err)
	p := newProcess(w)
	defer p.close()
	_, err = w.Start(t.Context(), p, 7)
	require.NoError(t, err)
	for _, want := range []string{"retried started, work.1.2 initialized 7\n", "retried started, work.1.3 initialized 7\n",
		"retried completed, gave 21\n"} {
		require.NoError(t, p.work(t.Context()))
		require.Equal(t, want, p.show())
		p.advance(2 * time.Second)
	}
	require.Equal(t, 6, changes, "the other answer sees each start and each end")
}

// A function of Retry that panics is an error of the definition, or of the start of a run.
func TestAFunctionOfRetryThatPanicsIsAnError(t *testing.T) {
	double := func(_ context.Context, n int) (int, error) { return 2 * n, nil }
	wrong := builder.Retry(func(*retry.Policy) { panic("no number") })
	_, err := builder.Func("double", double, wrong, builder.RetryPolicy(retry.Constant(2, time.Second)))
	require.ErrorContains(t, err, `bad-retry: the retry policy of function "double" is invalid: invalid retry policy: `+
		"the function of builder.Retry panicked: no number")
	f := builder.MustFunc("double", double)
	p := newProcess(f)
	defer p.close()
	_, err = f.Run(t.Context(), p, 1, wrong)
	require.ErrorIs(t, err, retry.ErrInvalid)
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	_, err = f.Run(t.Context(), p, 1, workflow.OptionFunc(func(*workflow.Command) error { panic("no option") }))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.ErrorContains(t, err, "an option of type workflow.OptionFunc panicked: no option")
}

// A builder that New did not make is a mistake of the program, and a panic that says so.
func TestABuilderThatNewDidNotMakePanics(t *testing.T) {
	for _, b := range []*builder.Builder[int]{nil, new(builder.Builder[int])} {
		for _, call := range []func(){
			func() { builder.Task(b, "a", builder.Work[int, int]{}) }, func() { b.Path(b.Start(), b.End()) },
			func() { _, _ = b.Build() }, func() { b.OnStarted(nil) },
		} {
			require.PanicsWithValue(t, "tasq: the Builder is nil, or its zero value: make it with builder.New", call)
		}
	}
}

func TestThePolicyOfATaskIsPartOfItsFingerprint(t *testing.T) {
	print := func(p retry.Policy) string {
		w, err := retried(p, nil)
		require.NoError(t, err)
		return w.Fingerprint
	}
	three := print(retry.Exponential(3, time.Second))
	require.Equal(t, three, print(retry.Exponential(3, time.Second)))
	for _, other := range []retry.Policy{{}, retry.Exponential(4, time.Second), retry.Exponential(3, time.Minute)} {
		require.NotEqual(t, three, print(other))
	}
}

func TestTwoPoliciesOfOneTaskAreAProblem(t *testing.T) {
	_, err := retried(retry.Exponential(3, time.Second), activities.Resume(retry.Exponential(2, time.Second)))
	require.ErrorContains(t, err, "each failure would make two items; give it one of them")
	_, err = retried(retry.Policy{Attempts: -1}, nil)
	require.ErrorContains(t, err, "the retry of task \"work\" cannot work")
}
