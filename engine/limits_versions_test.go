package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workflow"
)

// In a rolling deployment, a program of the earlier version is opened again while one of the next version is open: the definition of a limit
// in the next version stays in force. The earlier version alone replaces it, and so does "limit forget" by it.
func TestAnEarlierDefinitionOfALimitIsNoChange(t *testing.T) {
	f := newFleet(t)
	open := func(n int64) *engine.Engine {
		return f.open(engine.Config{}, builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil },
			builder.Limits(builder.Takes(limit.Rate("calls", n, time.Minute, limit.SlidingWindow), 1))))
	}
	inForce := func(e *engine.Engine, want int64, why string) {
		t.Helper()
		r, err := e.Do(t.Context(), workflow.Limits())
		require.NoError(t, err)
		require.Equal(t, want, r.Limits[0].Limit.N, why)
	}
	old := open(5)
	inForce(old, 5, "the first definition")
	next := open(10)
	inForce(next, 10, "a new definition is a change")
	require.NoError(t, old.Close())
	old = open(5)
	inForce(next, 10, "the next version is open")
	inForce(old, 10, "also in the earlier one")
	_, err := old.Do(t.Context(), workflow.ForgetLimit("calls"))
	require.NoError(t, err)
	inForce(old, 5, "an operator has decided")
	require.NoError(t, next.Close())
	next = open(10)
	inForce(next, 10, "a definition that the database does not know")
	require.NoError(t, next.Close())
	require.NoError(t, old.Close())
	inForce(open(5), 5, "no other engine is open")
}
