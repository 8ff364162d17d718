package workflow_test

import (
	"encoding/json"
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

// A limit that has room at no time that is known has no next in JSON, where the number of limit.Unknown would be one of 292 years.
func TestNextOfALimitInJSON(t *testing.T) {
	for next, text := range map[time.Duration]string{0: `"next":0`, time.Second: `"next":1000000000`, limit.Unknown: ""} {
		l := workflow.LimitInfo{Limit: limit.Resource("db", 3), Waiting: 2, Next: next}
		raw, err := json.Marshal(l)
		require.NoError(t, err)
		if text == "" {
			require.NotContains(t, string(raw), `"next"`)
		}
		require.Contains(t, string(raw), text)
		require.Contains(t, string(raw), `"waiting":2`)
		var read workflow.LimitInfo
		require.NoError(t, json.Unmarshal(raw, &read))
		require.Equal(t, l, read)
	}
}
