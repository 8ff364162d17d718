package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// An engine with the clock of the machine runs in a bubble of testing/synctest, where an hour passes at once; and one that runs
// outside, afterwards, has nothing of the bubble's.
func TestAnEngineInABubble(t *testing.T) {
	run := func(t *testing.T, pause time.Duration) {
		nap := builder.MustFunc("nap", func(ctx context.Context, n int) (int, error) {
			return n + 1, step.Sleep(ctx, "pause", pause)
		})
		e, err := engine.Open(t.Context(), sqlite.Memory(), nap)
		require.NoError(t, err)
		r, err := nap.Run(t.Context(), e, 1)
		require.NoError(t, err)
		got, err := r.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 2, got)
		require.NoError(t, e.Close())
	}
	synctest.Test(t, func(t *testing.T) { run(t, time.Hour) })
	run(t, time.Millisecond)
}
