package workflow_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workflow"
)

// A priority that PostgreSQL could not keep is refused on each store, and those at the bounds are taken.
func TestAPriorityIsWithin32Bits(t *testing.T) {
	for _, n := range []int{math.MaxInt32, -math.MaxInt32, 0} {
		c := workflow.Start("w", nil, workflow.Priority(n))
		require.NoError(t, c.Check())
	}
	for _, n := range []int{math.MaxInt32 + 1, math.MinInt32, math.MaxInt64, math.MinInt64} {
		c := workflow.Start("w", nil, workflow.Priority(n))
		err := c.Check()
		require.ErrorIs(t, err, workflow.ErrBadCommand)
		require.ErrorContains(t, err, "must be from -2147483647 to 2147483647")
	}
}
