package workflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workflow"
)

func TestWordsOfLimits(t *testing.T) {
	calls, slots := limit.Calls(10, time.Minute), limit.Resource("db", 3)
	paused := slots
	paused.N = 0
	for _, c := range []struct {
		info       workflow.LimitInfo
		kind, next string
	}{
		{workflow.LimitInfo{Limit: calls, Next: 1400 * time.Millisecond}, "in 1m, sliding window", "in 1.4s"},
		{workflow.LimitInfo{Limit: calls}, "in 1m, sliding window", "now"},
		{workflow.LimitInfo{Limit: slots, Next: limit.Unknown}, "slots", "on release"},
		{workflow.LimitInfo{Limit: paused}, "slots", "paused"},
	} {
		require.Equal(t, "no function here", c.info.NextFree())
		c.info.Loaded = true
		require.Equal(t, c.kind, c.info.Kind())
		require.Equal(t, c.next, c.info.NextFree())
	}
}
