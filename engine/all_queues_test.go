package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
)

// Jobs of all queues together are bounded, each of which has workers enough: the most urgent begins next, whatever its queue.
func TestJobsOfAllQueuesAreBounded(t *testing.T) {
	var all callLog
	var order events
	of := func(queue string) *builder.FuncRef[int, int] {
		return builder.MustFunc("in_"+queue, func(ctx context.Context, n int) (int, error) {
			order.add("%s %d", queue, n)
			return busyFor(&all, time.Second)(ctx, n)
		}, builder.OnQueue(queue))
	}
	a, b, c := of("a"), of("b"), of("c")
	inBubble(t, engine.Config{Workers: 10, MaxRunning: 2}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, a, numbers(4)...)
		runs = append(runs, startAll(t, e, b, numbers(4)...)...)
		urgent, err := c.Run(t.Context(), e, 0, workflow.Priority(5))
		require.NoError(t, err)
		<-time.After(500 * time.Millisecond)
		answer, err := e.Why(t.Context(), runs[7].ID)
		require.NoError(t, err)
		require.Contains(t, answer.String(), "others go first")
		answer, err = e.Why(t.Context(), urgent.ID)
		require.NoError(t, err)
		require.Contains(t, answer.String(), "this engine runs 2 jobs, the most that Config.MaxRunning allows")
		endAll(t, e, append(runs, urgent))
		require.Equal(t, 2, all.highest())
		require.Equal(t, 5*time.Second, time.Since(begin), "nine jobs, two at a time")
		require.Contains(t, order.all()[2:4], "c 0", "it is of the two that begin as the first two end: %v", order.all())
	}, a, b, c)
}
