package state_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/store/state"
)

// What is written is read by the scanner, and as encoding/json reads it.
func TestTheScannerReadsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(anEvent), 0, 6).Draw(t, "events")
		data := state.AppendChanges(nil, events, tree)
		require.False(t, state.Odd(data), "%s", data)
		got, err := state.DecodeChanges(data, caseID, nets)
		require.NoError(t, err)
		want, err := state.DecodeOdd(data, caseID, nets)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// A damaged text is refused, or read, as encoding/json does.
func TestADamagedTextIsReadAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := state.AppendChanges(nil, rapid.SliceOfN(rapid.Custom(anEvent), 1, 3).Draw(t, "events"), tree)
		for range rapid.IntRange(1, 2).Draw(t, "times") {
			at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
			data = slices.Concat(data[:at], damage.Draw(t, "by"), data[min(len(data), at+rapid.IntRange(0, 2).Draw(t, "of")):])
		}
		got, err := state.DecodeChanges(data, caseID, nets)
		want, wrong := state.DecodeOdd(data, caseID, nets)
		require.Equal(t, wrong == nil, err == nil, "%s\n%v\n%v", data, wrong, err)
		require.Equal(t, want, got, "%s", data)
		if err != nil {
			require.ErrorIs(t, err, state.ErrCorrupt)
		}
	})
}

// Texts that are no JSON, or not of the form that is written, are read, or refused, as encoding/json does.
func TestOddTextsAreReadAsJSON(t *testing.T) {
	for _, text := range []string{
		"", "[", "null", "[]", " []", "[] ", "[null]", "[{}]", "[{},]", `[{"e":"sent"}`, `[{"e":"sent"},]`, `[{"e":"sent"}{"e":"sent"}]`,
		`[{"e":"case-ended","to":"completed","left":["start""start"],"at":0}]`, `[{"e":"case-ended","to":"completed","left":["start" "start"],"at":0}]`,
		`[{"e":"case-ended","to":"completed","left":["start",],"at":0}]`, `[{"e":"case-ended","to":"completed","left":["start","start"],"at":0}]`,
		`[{"e":"sent","labels":null}]`, `[{"e":"sent","input":null}]`, `[{"e":"sent","input":[1,2}]`, `[{"e":"sent","input":"\`, `[{"e":"sent","input":01}]`,
		`[{"e":"sent","at":9223372036854775808}]`, `[{"e":"sent","gen":-0}]`, `[{"e":"sent","gen":1.5}]`, `[{"e":"sent","gen":-}]`, `[{"e":"sent""gen":1}]`,
		`[{"e":"sent","topic":false}]`, `[{"e":"sent","topic":truex}]`, `[{"E":"sent"}]`, `[{"e":"sent","other":1}]`, `[{"e":"sent","case":""}]`,
	} {
		got, err := state.DecodeChanges([]byte(text), caseID, nets)
		want, wrong := state.DecodeOdd([]byte(text), caseID, nets)
		require.Equal(t, wrong == nil, err == nil, "%s\n%v\n%v", text, wrong, err)
		require.Equal(t, want, got, "%s", text)
	}
}

var damage = rapid.Map(rapid.OneOf(rapid.SampledFrom([]string{"", " ", "0", "-", "1", ".", "e", "null", "true", "false", `"`, `\`, `\u0041`,
	"{", "}", "[", "]", ",", ":", `,"e":"task"`, `,"at":"1"`, `,"into":null`, "é", "\xff", "\x00"}), rapid.StringN(1, 2, -1)),
	func(s string) []byte { return []byte(s) })

// The scanner knows each key that there is.
func TestTheScannerKnowsEachKey(t *testing.T) {
	var keys []string
	for f := range reflect.TypeFor[state.Wire]().Fields() {
		keys = append(keys, f.Tag.Get("json"))
	}
	slices.Sort(keys)
	require.Equal(t, keys, state.ScannedKeys())
}

func BenchmarkDecodeChanges(b *testing.B) {
	data := []byte(`[{"e":"task","task":"draft","to":"started","gen":1,"from":["start"]},` +
		`{"e":"item","item":"09000000-0000-0000-0000-000000000000","action":"complete","to":"completed","output":{"cents":1250},"by":"ann","at":1795262400000001},` +
		`{"e":"produced","task":"draft","into":["start"]}]`)
	require.True(b, json.Valid(data))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := state.DecodeChanges(data, caseID, nets); err != nil {
			b.Fatal(err)
		}
	}
}
