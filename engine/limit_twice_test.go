package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
)

// A function and its step may take of one limit. A run that was suspended while its step waited continues when there is room for both.
func TestAFunctionAndItsStepTakeOfOneLimit(t *testing.T) {
	slots := limit.Resource("slots", 3)
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		return step.Do(ctx, "ask", func(context.Context) (int, error) { return n, nil }, step.Limits(step.Takes(slots, 1)))
	}, builder.Limits(builder.Takes(slots, 1)))
	busy := builder.MustFunc("busy", busyFor(new(callLog), time.Minute), builder.Limits(builder.Takes(slots, 2)))
	inBubble(t, engine.Config{Workers: 10}, func(t *testing.T, e *engine.Engine) {
		began := time.Now()
		two := startAll(t, e, busy, 1)
		synctest.Wait()
		one := startAll(t, e, f, 1)
		endAll(t, e, one)
		require.Equal(t, time.Minute, time.Since(began), "two slots of three are held until then")
		endAll(t, e, two)
	}, f, busy)
}

// What could never be admitted together fails the job, and does not wait without end.
func TestFunctionAndStepExceedLimit(t *testing.T) {
	slots := limit.Resource("slots", 3)
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		return step.Do(ctx, "ask", func(context.Context) (int, error) { return n, nil }, step.Limits(step.Takes(slots, 2)))
	}, builder.Limits(builder.Takes(slots, 2)))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		run := startAll(t, e, f, 1)[0]
		_, err := run.Result(t.Context(), e)
		require.ErrorContains(t, err, "the step takes 2 and its function 2 of 3 slots of slots, which admits 3 at once")
	}, f)
}
