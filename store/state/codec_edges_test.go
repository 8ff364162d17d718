package state_test

import (
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
)

// A text is stored so that every reader of JSON has it back. Bytes that are no UTF-8 are replaced.
func TestTextsAreStored(t *testing.T) {
	for text, want := range map[string]string{`"`: `"`, `\`: `\`, "\x1f": "\x1f", " ": " ", "\x7f": "\x7f", "\u2028": "\u2028", "ü": "ü",
		"\xff": "\ufffd", "\x80": "\ufffd", "<a>": "<a>"} {
		data := state.AppendChanges(nil, []state.Change{&state.Noted{Case: caseID, Task: -1, Code: "c", Text: text}}, tree)
		require.True(t, json.Valid(data) && utf8.Valid(data), "%q: %q", text, data)
		got, err := state.DecodeChanges(data, caseID, nets)
		require.NoError(t, err)
		require.Equal(t, want, got[0].(*state.Noted).Text)
	}
}

// A task that was never enabled is left out; one of which anything is known is not.
func TestTasksThatAreLeftOut(t *testing.T) {
	for want, task := range map[string]state.Task{
		`{}`:                                     {},
		`{"draft":{"state":"failed"}}`:           {State: state.TaskFailed},
		`{"draft":{"state":"disabled","gen":2}}`: {Generation: 2},
		`{"draft":{"state":"disabled","created":3}}`:  {Created: 3},
		`{"draft":{"state":"disabled","output":"x"}}`: {Output: json.RawMessage(`"x"`)},
	} {
		require.Equal(t, want, string(state.AppendTasks(nil, review, []state.Task{task, {}})))
	}
}

// The counts of tokens that can be stored are those that a marking can hold.
func TestCountsOfTokens(t *testing.T) {
	marking, err := state.DecodeMarking([]byte(`{"start":0,"end":2147483647}`), review)
	require.NoError(t, err)
	require.Equal(t, []int32{0, math.MaxInt32}, []int32(marking[:2]))
	for _, n := range []string{"0", "2147483647"} {
		_, err := state.DecodeChanges([]byte(`[{"e":"removed","task":"draft","condition":"start","n":`+n+`}]`), caseID, nets)
		require.NoError(t, err, n)
	}
}

// A gate that has no word is refused, also the first one behind those that have.
func TestGatesWithoutAWord(t *testing.T) {
	for gate := net.And; gate < 9; gate++ {
		_, err := state.EncodeNet(&net.Definition{Tasks: []net.Task{{Name: "t", Join: gate}}})
		require.Equal(t, gate > net.Or, err != nil, "%d: %v", gate, err)
	}
}
