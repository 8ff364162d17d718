package why_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// Of many holds of a limit the first hundred are listed, all are summed up, and the others are counted.
func TestManyHoldsAreListedInPart(t *testing.T) {
	const more = 7
	b := builder.New[string]("loading")
	load := builder.Task(b, "load", builder.Work[string, string]{
		Input: builder.CaseInput(b), Run: func(_ context.Context, ship string) (string, error) { return ship, nil }})
	leave := builder.Task(b, "leave", builder.Work[string, string]{Input: builder.Output(load)})
	b.Path(b.Start(), load, leave, b.End())
	b.Hold(builder.TakesBy(limit.Resource("berth", 2), 2, func(ship string) string { return ship }), load, leave)
	w := b.MustBuild()
	e := enginetest.New(t, w)
	for n := range workflow.MaxHolders + more {
		_, err := w.Start(t.Context(), e, fmt.Sprint("ship ", n))
		require.NoError(t, err)
	}
	e.Drain()
	result, err := e.Do(t.Context(), workflow.Limits())
	require.NoError(t, err)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		list, err := why.ReadLimits(t.Context(), r, result.Limits)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Len(t, list[0].Holders, workflow.MaxHolders)
		require.Equal(t, more, list[0].MoreHolders)
		require.EqualValues(t, 2*(workflow.MaxHolders+more), list[0].Held)
		return nil
	}))
}
