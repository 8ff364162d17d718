package builder_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/workflow"
)

func echoes(_ context.Context, inputs []int) ([]builder.Outcome[int], error) {
	return make([]builder.Outcome[int], len(inputs)), nil
}

func TestProblemsOfABatch(t *testing.T) {
	for want, build := range map[string]func() error{
		"takes 0 items; give 1 or more": func() error { _, err := builder.Batch("f", 0, 0, echoes); return err },
		"Batch.Wait of task \"run\" is": func() error { _, err := builder.Batch("f", 2, -time.Second, echoes); return err },
		"has no function":               func() error { _, err := builder.Batch[int, int]("f", 2, time.Second, nil); return err },
		"is given no function":          func() error { _, err := builder.Batch[int, int]("f", 0, 0, nil); return err },
		"has both Run and Batch": func() error {
			b := builder.New[int]("w")
			b.Path(b.Start(), builder.Task(b, "t", builder.Work[int, int]{
				Input: builder.CaseInput(b), Run: func(_ context.Context, n int) (int, error) { return n, nil },
				Batch: builder.Batched[int, int]{Most: 1, Run: echoes},
			}), b.End())
			_, err := b.Build()
			return err
		},
	} {
		require.ErrorContains(t, build(), want)
	}
	require.Panics(t, func() { builder.MustBatch("f", 0, 0, echoes) })
}

// The numbers of a batch are part of the definition, and can be read from its document.
func TestABatchIsPartOfTheDefinition(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range []builder.Definition{
		builder.MustBatch("f", 2, time.Second, echoes), builder.MustBatch("f", 3, time.Second, echoes), builder.MustBatch("f", 2, 2*time.Second, echoes),
		builder.MustFunc("f", func(_ context.Context, n int) (int, error) { return n, nil }),
	} {
		seen[f.Untyped().Fingerprint] = true
	}
	require.Len(t, seen, 4)
	batches, err := workflow.BatchesOf(builder.MustBatch("f", 2, 90*time.Second, echoes).Untyped().Document)
	require.NoError(t, err)
	require.Equal(t, map[string]workflow.Batching{"run": {Most: 2, Wait: 90 * time.Second}}, batches)
}
