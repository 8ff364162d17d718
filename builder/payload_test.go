package builder_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// accepts makes the function that accepts a P: as the output of a task, and as the input of a case.
func accepts[P any](t *testing.T) func(string) (json.RawMessage, error) {
	b := builder.New[P]("w")
	b.Path(b.Start(), builder.Task(b, "a", builder.Work[any, P]{}), b.End())
	w, err := b.Build()
	require.NoError(t, err)
	return func(payload string) (json.RawMessage, error) {
		out, err := w.Tasks[0].Accept(workitem.Complete, json.RawMessage(payload))
		in, inErr := w.Accept(json.RawMessage(payload))
		require.Equal(t, out, in)
		require.Equal(t, err == nil, inErr == nil)
		return out, err
	}
}

// same says that every payload is accepted in the form behind it, and that "!" refuses it.
func same(t *testing.T, accept func(string) (json.RawMessage, error), pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		got, err := accept(pairs[i])
		if reason, bad := strings.CutPrefix(pairs[i+1], "!"); bad {
			require.ErrorContains(t, err, reason, "payload %q", pairs[i])
			continue
		}
		require.NoError(t, err, "payload %q", pairs[i])
		require.Equal(t, pairs[i+1], string(got), "payload %q", pairs[i])
	}
}

func TestPayloadsAreReadStrictly(t *testing.T) {
	type loose struct {
		A int    `json:"a"`
		B string `json:"b,omitempty"`
	}
	same(t, accepts[Draft](t), `{"body":"b"}`, `{"body":"b"}`, ` { "body" : "<b>" } `, `{"body":"<b>"}`,
		`{"body":"b","bdy":1}`, "!unknown field", `{"body":""}`, "!body: required", ``, "!body: required",
		`null`, "!body: required",
		`{"body":1}`, "!body: must be of type string", `{"body":"b"} x`, "!unexpected data", `{`, "!unexpected EOF")
	same(t, accepts[*Draft](t), `{"body":"b"}`, `{"body":"b"}`, ``, "!body: required", `null`, "!body: required")
	same(t, accepts[loose](t), ``, `{"a":0}`, `null`, `{"a":0}`, `{"b":"x"}`, `{"a":0,"b":"x"}`)
	same(t, accepts[struct{}](t), ``, ``, `null`, ``, `{}`, `{}`, `{"a":1}`, "!unknown field")
	same(t, accepts[any](t), ``, ``, `null`, ``, `12345678901234567890`, `12345678901234567890`, `{ }`, `{}`,
		`{`, "!not JSON", `"x"`, `"x"`)
	same(t, accepts[json.RawMessage](t), ``, ``, ` [ 1 ] `, `[1]`, `x`, "!not JSON")
	same(t, accepts[[]int](t), ``, ``, `[1]`, `[1]`, `{}`, "!")
	same(t, accepts[map[string]int](t), ``, ``, `{"a":1}`, `{"a":1}`)
	same(t, accepts[string](t), ``, "!the payload is missing", `null`, "!the payload is missing", `"x"`, `"x"`, `1`, "!")
	same(t, accepts[int](t), `7`, `7`, ``, "!the payload is missing")
	_, err := accepts[any](t)(`"` + strings.Repeat("x", domain.MaxSize) + `"`)
	require.ErrorIs(t, err, domain.ErrTooLarge)
}

func TestFailuresMayBePlainWords(t *testing.T) {
	b := builder.New[any]("w")
	b.Path(b.Start(), builder.Task(b, "a", builder.Work[any, any]{}), b.End())
	w := b.MustBuild()
	for _, a := range []workitem.Action{workitem.Fail, workitem.Cancel} {
		accept := func(s string) (json.RawMessage, error) { return w.Tasks[0].Accept(a, json.RawMessage(s)) }
		same(t, accept,
			``, ``, `null`, ``,
			`"too dear"`, `{"message":"too dear","retryable":true}`,
			`{"code":"c"}`, `{"code":"c","retryable":true}`,
			`{"code":"c","retryable":false,"details":[1],"after":5}`, `{"code":"c","details":[1],"retryable":false,"after":5}`,
			`{"cod":"c"}`, `!unknown field "cod"; did you mean "code"?`, `{"after":-1}`, "!give zero or more",
			`7`, "!send an object with the fields code, message, details, retryable, after",
			`{} {}`, "!unexpected data", `"`, "!")
	}
	for _, a := range []workitem.Action{workitem.Start, workitem.Reset} {
		accept := func(s string) (json.RawMessage, error) { return w.Tasks[0].Accept(a, json.RawMessage(s)) }
		same(t, accept, ``, ``, `null`, ``, `{}`, "!"+a.String()+" takes no payload")
	}
}

// What was accepted is canonical: accepting it again changes nothing, whatever came in.
func TestAcceptingTwiceIsAcceptingOnce(t *testing.T) {
	type payload struct {
		S string         `json:"s" validate:"max=5"`
		N *int           `json:"n,omitempty"`
		M map[string]any `json:"m"`
	}
	accept := accepts[payload](t)
	rapid.Check(t, func(rt *rapid.T) {
		m := map[string]any{rapid.String().Draw(rt, "key"): rapid.Bool().Draw(rt, "value")}
		p := payload{S: rapid.String().Draw(rt, "s"), M: m}
		if rapid.Bool().Draw(rt, "has n") {
			n := rapid.Int().Draw(rt, "n")
			p.N = &n
		}
		raw, err := json.Marshal(p)
		require.NoError(t, err)
		once, err := accept(string(raw))
		if err != nil {
			return
		}
		twice, err := accept(string(once))
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

func TestItemsAreEncodedOneByOne(t *testing.T) {
	b := builder.New[any]("w")
	b.Path(b.Start(), builder.Task(b, "a", builder.Work[Prompt, any]{
		Items: func(context.Context, *activities.Activation) ([]Prompt, error) { return []Prompt{{Text: "x"}, {}}, nil },
	}), b.End())
	w := b.MustBuild()
	unused := newProcess(w)
	defer unused.close()
	_, err := w.Start(ctx, unused, nil)
	require.ErrorContains(t, err, "input of item 2 of 2: invalid builder_test.Prompt: text: required")
}
