package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/store"
)

// The middle of its class is at most 6 % from any duration, and longer durations have no lower class.
func TestClassesOfDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 50).Draw(t, "bits")).Draw(t, "us")) * time.Microsecond
		require.InDelta(t, float64(d), float64(store.TookOf(store.TookClass(d))), 0.0626*float64(d)+float64(time.Microsecond), d)
		require.GreaterOrEqual(t, store.TookClass(d+time.Microsecond), store.TookClass(d))
	})
	require.Zero(t, store.TookClass(-time.Second))
	require.Zero(t, store.TookOf(0))
}
