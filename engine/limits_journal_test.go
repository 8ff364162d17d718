package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
)

// The journal has when each attempt began: no window sees more of them than a rate admits, with 64 in flight and whatever the algorithm, and what
// the rate admits is used. GCRA of 60 in a minute has room again at times that are no whole microseconds.
func TestTheJournalHasNoWindowOverARate(t *testing.T) {
	const n, runs = 60, 300
	var rates []limit.Limit
	for _, algorithm := range []limit.Algorithm{limit.SlidingWindow, limit.GCRA, limit.LeakyBucket, limit.TokenBucket, limit.FixedWindow} {
		rate := limit.Rate("calls", n, time.Minute, algorithm)
		rates = append(rates, rate, rate.Shared())
	}
	for _, rate := range rates {
		t.Run(fmt.Sprintf("%v/shared=%v", rate.Algorithm, rate.InStore), func(t *testing.T) {
			f := builder.MustFunc("f", func(_ context.Context, n int) (int, error) { return n, nil },
				builder.Limits(builder.Takes(rate, 1)))
			in := enginetest.Store(t)
			if rate.InStore {
				in = sqlite.Memory() // a server counts with its own clock
			}
			e := enginetest.Open(t, in, engine.Config{Workers: 64}, f)
			for i := range runs {
				_, err := f.Run(t.Context(), e, i)
				require.NoError(t, err)
			}
			e.Advance(8 * time.Minute)
			began := attemptsBegan(t, e)
			require.Len(t, began, runs)
			require.LessOrEqual(t, mostIn(began, time.Minute), int(rate.AnyWindow(1)))
			if rate.Algorithm == limit.SlidingWindow {
				require.Less(t, began[runs-1].Sub(began[0]), 5*time.Minute, "300 calls take four windows, and the time of portions")
			}
		})
	}
}

// attemptsBegan are the times in the journal at which jobs began.
func attemptsBegan(t *testing.T, v store.Viewer) (times []time.Time) {
	for entry, err := range store.AllEntries(t.Context(), v, store.JournalFilter{}) {
		require.NoError(t, err)
		for _, c := range entry.Changes {
			if moved, ok := c.(*state.JobMoved); ok && moved.To == state.JobRunning {
				times = append(times, entry.At)
			}
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// mostIn is the most times that any window sees, [t, t+per).
func mostIn(times []time.Time, per time.Duration) (most int) {
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) >= per {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
