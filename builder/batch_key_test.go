package builder_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
)

func TestTheKeyOfABatch(t *testing.T) {
	run := func(context.Context, []int) ([]builder.Outcome[int], error) { return nil, nil }
	refused := func(text string, err error) {
		t.Helper()
		require.ErrorContains(t, err, text)
	}
	_, err := builder.Batch("f", 2, 0, run, builder.BatchBy(func(s string) string { return s }))
	refused("the key of the batch of function \"f\" takes string, and the input is int; let it take that", err)
	_, err = builder.Batch("f", 2, 0, run, builder.BatchBy[int](nil))
	refused("the key of the batch of function \"f\" is nil", err)
	_, err = builder.Func("f", func(context.Context, int) (int, error) { return 0, nil }, builder.BatchBy(func(int) string { return "" }))
	refused("function \"f\" is given builder.BatchBy, and is no batch", err)
	plain, err := builder.Batch("f", 2, 0, run)
	require.NoError(t, err)
	keyed, err := builder.Batch("f", 2, 0, run, builder.BatchBy(func(int) string { return "" }))
	require.NoError(t, err)
	require.NotEqual(t, plain.Untyped().Fingerprint, keyed.Untyped().Fingerprint)
}
