package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
)

// The configuration of docs/testing.md, "Everything inline": functions of different queues do not run beside each other.
func TestInlineRunsOneFunctionAtATime(t *testing.T) {
	var all callLog
	a := builder.MustFunc("in_a", busyFor(&all, time.Second), builder.OnQueue("a"))
	b := builder.MustFunc("in_b", busyFor(&all, time.Second), builder.OnQueue("b"))
	inBubble(t, engine.Config{Workers: 1, MaxRunning: 1, Steps: 1}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		startAll(t, e, a, numbers(3)...)
		startAll(t, e, b, numbers(3)...)
		require.NoError(t, e.Drain(t.Context()))
		require.Equal(t, 1, all.highest())
		require.Equal(t, 6*time.Second, time.Since(begin), "six jobs, one at a time")
	}, a, b)
}
