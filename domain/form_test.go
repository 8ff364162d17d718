package domain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/domain"
)

// lists is JSON of lists within each other.
func lists(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// Valid JSON of which readers make different things is refused wherever JSON comes in, with the place and without its values.
func TestJSONWithoutACertainMeaningIsRefused(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":0`, i)
	}
	object := strings.Join(many, ",")
	for text, want := range map[string]string{
		`{"a":1,"a":2}`:                         `the field "a" is there twice; send it once (byte 7)`,
		`{"a":1,"b":{"a":2,"a":"secret"}}`:      `the field "b.a" is there twice; send it once (byte 18)`,
		`[{},{"x":[0,{"y":"\"","y":0}]}]`:       `the field "[1].x[1].y" is there twice; send it once (byte 22)`,
		`{"a":1,"\u0061":2}`:                    `the field "a" is there twice`,
		`{"ü":1,"\u00fc":2}`:                    `the field "ü" is there twice`,
		`{"a\\":1,"a\\":2}`:                     `the field "a\\" is there twice`,
		`{"\ud800":1,"\ud801":2}`:               `is there twice`, // both are read as U+FFFD
		`{` + object + `,"k17":1}`:              `the field "k17" is there twice`,
		`{` + object + `,"l":{"k1":{}},"k2":1}`: `the field "k2" is there twice`,
		`1e400`:                                 `the number is beyond the range of a float64; send it as a text`,
		`{"a":[0,-1E+400]}`:                     `the number "a[1]" is beyond the range of a float64; send it as a text (byte 8)`,
		strings.Repeat("9", 310):                `the number is beyond`,
		lists(1001):                             `objects and lists are nested too deeply, in more than 1000 levels, at byte 1000`,
	} {
		refused := func(err error) {
			t.Helper()
			_, ok := errors.AsType[*domain.InvalidError](err)
			require.True(t, ok, "%s: %v", text, err)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "secret")
		}
		refused(domain.CheckJSON([]byte(text)))
		_, err := domain.Decode[json.RawMessage]([]byte(text))
		refused(err)
		_, err = domain.Encode(struct{ R json.RawMessage }{json.RawMessage(text)})
		require.ErrorAs(t, err, new(*domain.InvalidError), text)
	}
	for _, fine := range []string{
		`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, `{"a":1,"A":2}`, `{"a":"a","b":"a,\"b\":"}`, `{"a":"\\","b":0}`, `{"":1,"a":{"":2}}`,
		`[1e308,-1.7976931348623157e308,1e-400,0.` + strings.Repeat("1", 400) + `,12345678901234567890]`, `{` + object + `,"K1":0}`, lists(1000),
	} {
		require.NoError(t, domain.CheckJSON([]byte(fine)), fine)
	}
}

// Names that encoding/json takes for the same field of a struct are one name; the keys of a map are not.
func TestAFieldInOtherLettersIsThereTwice(t *testing.T) {
	type inner struct {
		Sub   *inner         `json:"sub"`
		Größe int            `json:"größe"`
		Any   any            `json:"any"`
		Map   map[string]int `json:"map"`
	}
	for text, want := range map[string]string{
		`{"any":1,"Any":2}`:                                     `the field "any" is there twice; send it once (byte 14)`,
		`{"sub":{"sub":{"größe":1,"GRÖSSE":2}}}`:                "", // an unknown field
		`{"sub":{"sub":{"größe":1,"GRÖßE":2}}}`:                 `the field "sub.sub.größe" is there twice`,
		`{"map":{"a":1,"A":2},"any":{"a":1,"A":2}}`:             "",
		`{"map":{"a":1,"A":2},"any":{"a":1,"a":2}}`:             `the field "any.a" is there twice`,
		`{"any":[{"a":1,"A":2}],"sub":{"SUB":null,"Sub":null}}`: `the field "sub.sub" is there twice`,
	} {
		_, err := domain.Decode[inner]([]byte(text))
		if want == "" {
			if err != nil {
				require.ErrorContains(t, err, "unknown field", text)
			}
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

// What was accepted as any value can be read, and written again.
func TestAcceptedJSONCanBeReadAndWritten(t *testing.T) {
	for _, data := range []string{lists(1000), strings.Repeat(`{"a":[`, 500) + strings.Repeat(`]}`, 500), `1e308`, `{"a":1,"A":2}`} {
		require.NoError(t, domain.CheckJSON([]byte(data)))
		v, err := domain.Restore[any]([]byte(data))
		require.NoError(t, err)
		_, err = domain.Encode(v)
		require.NoError(t, err, data)
	}
	_, err := domain.Restore[any]([]byte(lists(1001)))
	require.NoError(t, err, "what an older program has stored is read")
}

// A value that cannot be written is invalid like one that cannot be read.
func TestAValueThatIsNoJSONIsInvalid(t *testing.T) {
	type node struct{ Next *node }
	loop := &node{}
	loop.Next = loop
	deep := any(1)
	for range 1001 {
		deep = []any{deep}
	}
	for name, v := range map[string]any{"func": func() {}, "channel": map[string]any{"c": make(chan int)}, "NaN": []float64{0, math.NaN()}, "loop": loop, "deep": deep} {
		_, err := domain.Encode(v)
		_, ok := errors.AsType[*domain.InvalidError](err)
		require.True(t, ok, "%s: %v", name, err)
	}
}

// The rule about fields agrees with a plain reader, whatever the form.
func TestFieldsThatAreThereTwiceAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		twice := false
		var value func(depth int) string
		value = func(depth int) string {
			kind := rapid.IntRange(0, 5).Draw(t, "kind")
			if depth == 0 || kind < 2 {
				return rapid.SampledFrom([]string{`1`, `-2.5e3`, `"a"`, `"\""`, `"{\"a\":1,\"a\":2}"`, `true`, `null`, `{}`, `[]`, `"\\"`}).Draw(t, "plain")
			}
			n := rapid.SampledFrom([]int{0, 1, 2, 3, 30}).Draw(t, "n")
			parts, names := []string{}, map[string]bool{}
			for i := range n {
				if kind == 2 {
					parts = append(parts, value(depth-1))
					continue
				}
				name := rapid.SampledFrom([]string{"a", "b", "A", "ü", "", fmt.Sprint(i), fmt.Sprint(i)}).Draw(t, "name")
				twice = twice || names[name]
				names[name] = true
				quoted, _ := json.Marshal(name)
				if name == "a" && rapid.Bool().Draw(t, "escaped") {
					quoted = []byte(`"\u0061"`)
				}
				parts = append(parts, string(quoted)+rapid.SampledFrom([]string{":", " : "}).Draw(t, "colon")+value(depth-1))
			}
			if kind == 2 {
				return "[" + strings.Join(parts, ", ") + "]"
			}
			return "{" + strings.Join(parts, ",\n") + "}"
		}
		data := value(3)
		err := domain.CheckJSON([]byte(data))
		require.Equal(t, twice, err != nil, "%s: %v", data, err)
	})
}
