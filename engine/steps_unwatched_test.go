package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
)

// A run that goes on learns what has ended before its function came to the first step: otherwise it would wait for it in
// memory for ever.
func TestAWaitThatEndsBeforeTheFunctionLooksAtItsSteps(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var runs tally
	w, _ := function(t, "two_events", func(ctx context.Context, _ int) (int, error) {
		if runs.add("run") == 2 {
			close(entered)
			<-release
		}
		a := step.Go(ctx, func(ctx context.Context) (int, error) { return step.Await[int](ctx, "a") })
		b := step.Go(ctx, func(ctx context.Context) (int, error) { return step.Await[int](ctx, "b") })
		if err := step.All(ctx, a, b); err != nil {
			return 0, err
		}
		x, _ := a.Wait(ctx)
		y, err := b.Wait(ctx)
		return x + y, err
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	var done sync.WaitGroup
	require.NoError(t, e.Send(t.Context(), id, "a", 1))
	done.Go(e.Drain)
	<-entered
	require.NoError(t, e.Send(t.Context(), id, "b", 2))
	close(release)
	done.Wait()
	require.Equal(t, "completed: 3", outcome(t, e, id))
	e.Check()
}
