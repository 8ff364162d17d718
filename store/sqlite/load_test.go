package sqlite

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
)

// The port leaves it to others how a task may be called: every name has a JSON form, and not all have that of a Go
// text.
func TestLatestActivationsAreJSON(t *testing.T) {
	const odd = "bell\a, delete\x7f, tag\U000e0001"
	n := net.MustCompile(&net.Definition{
		Name:       "odd",
		Conditions: []net.Condition{{Name: "start", Role: net.Start}, {Name: "end", Role: net.End}},
		Tasks:      []net.Task{{Name: odd}},
		Flows:      []net.Flow{{From: "start", To: odd}, {From: odd, To: "end"}},
	})
	text, err := latestActivations(&state.Case{Net: n, Tasks: []state.Task{{Generation: 3}}})
	require.NoError(t, err)
	var got map[string]int
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, map[string]int{odd: 3}, got)
}
