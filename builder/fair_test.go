package builder_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
)

// A key of FairBy takes the input of its function.
func TestAFairKeyIsOfTheInput(t *testing.T) {
	run := func(_ context.Context, in string) (string, error) { return in, nil }
	_, err := builder.Func("f", run, builder.FairBy(func(n int) string { return "" }))
	require.ErrorContains(t, err, `the key of FairBy of function "f" takes int, and the input is string; let it take that`)
	_, err = builder.Func("f", run, builder.FairBy[string](nil))
	require.ErrorContains(t, err, `the key of FairBy of function "f" is nil; give one, or leave it out`)
	f, err := builder.Func("f", run, builder.FairBy(func(in string) string { return in }))
	require.NoError(t, err)
	plain, err := builder.Func("f", run)
	require.NoError(t, err)
	require.Equal(t, plain.Fingerprint, f.Fingerprint, "keys are no part of what a run is")

	b := builder.New[string]("w")
	person := builder.Task(b, "t", builder.Work[string, string]{Input: builder.CaseInput(b), FairBy: func(in string) string { return in }})
	b.Path(b.Start(), person, b.End())
	_, err = b.Build()
	require.ErrorContains(t, err, `task "t" has FairBy but no Run`)
}
