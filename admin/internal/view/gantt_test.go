package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The marks of a chart differ, however short or long its time is.
func TestMarksOfAChartDiffer(t *testing.T) {
	for whole := time.Millisecond; whole < 365*24*time.Hour; whole = whole * 11 / 10 {
		seen := make(map[time.Duration]bool)
		for i := range 6 {
			seen[axisMark(whole, i, 5)] = true
		}
		require.Len(t, seen, 6, "%v", whole)
	}
}
