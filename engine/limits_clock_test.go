package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A clock that is set by hours while jobs wait for a limit loses none of them, and admits no more than the limit at the moment of the step; set
// back, they wait no longer than until the clock is where it was, and a window more.
func TestAClockThatIsSetWhileJobsWaitForALimit(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, by := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
			calls, db := limit.Calls(2, time.Minute), enginetest.Store(t)
			if shared {
				calls, db = calls.Shared(), sqlite.Memory() // a server has a clock of its own for what engines share
			}
			done := 0
			f := builder.MustFunc("f", func(_ context.Context, n int) (int, error) { done++; return n, nil }, builder.Limits(builder.Takes(calls, 1)))
			e := enginetest.Open(t, db, engine.Config{Workers: 1}, f)
			for n := range 8 {
				_, err := f.Run(t.Context(), e, n)
				require.NoError(t, err)
			}
			e.Drain()
			require.Equal(t, 2, done)
			e.Clock().Set(e.Now().Add(by))
			e.Drain()
			require.LessOrEqual(t, done, 4, "no more than one window more: %s, shared %v", by, shared)
			e.Advance(max(0, -by) + 5*time.Minute)
			require.Equal(t, 8, done, "%s, shared %v", by, shared)
		}
	}
}
