package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What makes more and more without enabling a task again, as a callback that answers each item with another one, is
// stopped by the number of its steps.
func TestStepsAreBounded(t *testing.T) {
	m := &Machine{}
	var more step
	more = func() error {
		m.then(more)
		return nil
	}
	m.then(more)
	require.ErrorIs(t, m.run(0), ErrRunaway)
	require.Equal(t, MaxSteps+1, m.steps)
}
