package integrity_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/step"
)

// The check of a case with many items, child cases and steps costs what its entries change, and not its size at each of its entries.
func TestTheCheckOfAWideCaseIsLinear(t *testing.T) {
	const wide = 300
	many := func(context.Context, *activities.Activation) ([]int, error) { return make([]int, wide), nil }
	run := func(_ context.Context, n int) (int, error) { return n, nil }
	b := builder.New[int]("small")
	work := builder.Task(b, "work", builder.Work[int, int]{Input: builder.CaseInput(b), Run: run})
	b.Path(b.Start(), work, b.End())
	small := b.MustBuild()

	b = builder.New[int]("wide")
	items := builder.Task(b, "items", builder.Work[int, int]{Items: many, Run: run})
	cases := builder.Composite(b, "cases", small, builder.Cases[int]{Items: many})
	b.Path(b.Start(), items, cases, b.End())
	w := b.MustBuild()
	calls := builder.MustFunc("calls", func(ctx context.Context, n int) (int, error) {
		branches := make([]*step.Branch[int], wide)
		for i := range branches {
			branches[i] = step.Go(ctx, func(ctx context.Context) (int, error) { return step.Call[int](ctx, "call", "small", n) })
		}
		for _, b := range branches {
			if _, err := b.Wait(ctx); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	e := enginetest.New(t, w, calls)
	_, err := w.Start(t.Context(), e, 1)
	require.NoError(t, err)
	_, err = calls.Start(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	report, err := integrity.Inspect(t.Context(), e, nil)
	require.NoError(t, err)
	require.Empty(t, report.Breaches)
	require.Greater(t, report.Entries, int64(3*wide))
	require.Less(t, report.Looked(), 20*report.Entries)
}
