package domain_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/domain"
)

type Prompt struct {
	Text  string   `json:"text" validate:"required,max=40"`
	Count int8     `json:"count" validate:"gte=0"`
	Words []string `json:"words,omitempty" validate:"max=2,dive,alpha"`
	Sub   *Prompt  `json:"sub,omitempty"`
}

func TestDecodeIsStrict(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"empty":             {"", "there is no JSON"},
		"blank":             {" \n", "there is no JSON"},
		"cut short":         {`{"text":"a"`, "not JSON: unexpected end"},
		"not JSON":          {`{"text":a}`, "not JSON, at byte 9: invalid character 'a'"},
		"trailing value":    {`{"text":"a"} {"text":"b"}`, "unexpected data after the JSON value"},
		"trailing garbage":  {`{"text":"a"}x`, "unexpected data after the JSON value"},
		"trailing bracket":  {`{"text":"a"} ]`, "unexpected data after the JSON value"},
		"misspelt field":    {`{"text":"a","cuont":3}`, `unknown field "cuont"; did you mean "count"? The fields are text, count, words, sub`},
		"misspelt, nested":  {`{"text":"a","sub":{"txt":"b"}}`, `unknown field "sub.txt"; did you mean "text"?`},
		"unlike any field":  {`{"text":"a","price":3}`, `unknown field "price"; the fields are text, count, words, sub`},
		"wrong type":        {`{"text":"a","count":"3"}`, "count: must be of type int8"},
		"wrong type inside": {`{"text":"a","sub":{"text":1}}`, "sub.text: must be of type string"},
		"too big a number":  {`{"text":"a","count":300}`, "count: must be of type int8"},
		"wrong shape":       {`["a"]`, "it is JSON of another form (array); send an object with the fields text, count, words, sub"},
		"null":              {`null`, "text: required"},
		"broken rules":      {`{"count":-1,"words":["a","2"]}`, "count: gte=0; text: required; words[1]: alpha"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := domain.Decode[Prompt]([]byte(c.data))
			require.Zero(t, got)
			var invalid *domain.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "domain_test.Prompt", invalid.Type)
			require.ErrorContains(t, err, "invalid domain_test.Prompt: ")
			require.ErrorContains(t, err, c.want)
		})
	}
	got, err := domain.Decode[Prompt]([]byte(" {\"text\":\"größer\",\"words\":[\"a\"]}\n"))
	require.NoError(t, err)
	require.Equal(t, Prompt{Text: "größer", Words: []string{"a"}}, got)

	_, err = domain.Decode[badName]([]byte(`{}`))
	var bad *domain.TypeError
	require.ErrorAs(t, err, &bad)
}

func TestTheCauseOfMalformedJSONIsKept(t *testing.T) {
	_, err := domain.Decode[Prompt]([]byte(`{` + "\x01"))
	var syntax *json.SyntaxError
	require.ErrorAs(t, err, &syntax)
	_, err = domain.Decode[Prompt]([]byte(`{"count":"3"}`))
	var mismatch *json.UnmarshalTypeError
	require.ErrorAs(t, err, &mismatch)
	_, err = domain.Decode[Prompt]([]byte(`7`))
	require.ErrorAs(t, err, &mismatch)
}

type base struct {
	ID   string `json:"id"`
	Kind string
}

type named struct {
	Inner string `json:"inner"`
}

type own struct{ Text string }

func (o *own) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &o.Text) }

type wide struct {
	base
	*named `json:"named"`
	Own    own             `json:"own"`
	At     time.Time       `json:"at"`
	Any    any             `json:"any"`
	Raw    json.RawMessage `json:"raw"`
	List   []*base         `json:"list"`
	Map    map[string]base `json:"map"`
	Bytes  []byte          `json:"bytes"`
	Gone   string          `json:"-"`
	hidden string          //lint:ignore U1000 that it is not set shows in the test
}

func TestAnUnknownFieldIsFoundWhereverItIs(t *testing.T) {
	for data, want := range map[string]string{
		`{"idd":"x"}`:    `unknown field "idd"; did you mean "id"?`,
		`{"kindd":"x"}`:  `unknown field "kindd"; did you mean "Kind"?`,
		`{"inner":"x"}`:  `unknown field "inner"; the fields are id, Kind, own, at, any, raw, list, map, bytes`,
		`{"Gone":"x"}`:   `unknown field "Gone"`,
		`{"hidden":"x"}`: `unknown field "hidden"`,
		`{"list":[{"id":"a"},{"ID":"b","ib":1}]}`:       `unknown field "list[1].ib"; did you mean "id"? The fields are id, Kind`,
		`{"map":{"a":{},"b":{"kin":1}}}`:                `unknown field "map[b].kin"; did you mean "Kind"?`,
		`{"own":"x","at":"2030-01-01T00:00:00Z","z":1}`: `unknown field "z"; the fields are`,
		`{"any":{"what":1},"raw":{"ever":2},"zz":1}`:    `unknown field "zz"`,
	} {
		_, err := domain.Decode[wide]([]byte(data))
		require.ErrorContains(t, err, want, data)
	}
	_, err := domain.Decode[struct{}]([]byte(`{"a":1}`))
	require.ErrorContains(t, err, `unknown field "a"; there are no fields here`)
	for _, fits := range []string{`{"ID":"x","KIND":"y"}`, `{"any":{"what":1},"raw":{"ever":2}}`, `{"own":"x","bytes":"eA=="}`} {
		_, err := domain.Decode[wide]([]byte(fits))
		require.NoError(t, err, fits)
	}
}

// Data from outside may be as deep as it likes. The invalid field is found in one pass, and named.
func TestAnUnknownFieldIsFoundHoweverDeepItIs(t *testing.T) {
	type tree struct {
		Kids []tree `json:"kids"`
	}
	const depth = 300
	data := strings.Repeat(`{"kids":[`, depth) + `{"bogus":"` + strings.Repeat("x", 900_000) + `"}` +
		strings.Repeat(`]}`, depth)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := domain.Decode[tree]([]byte(data))
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, `unknown field "...`)
	require.ErrorContains(t, err, `kids[0].kids[0].bogus"; the fields are kids`)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "and not once for each level")

	_, err = domain.Decode[tree]([]byte(`{"kids":[{"` + strings.Repeat("ä", 100) + `":1}]}`))
	require.ErrorContains(t, err, `unknown field "...`)
	require.ErrorContains(t, err, `ää..."; the fields are kids`)
}

func TestALongPathIsShownByItsEnd(t *testing.T) {
	type tree struct {
		Kids []tree `json:"kids" validate:"dive"`
		Name string `json:"name" validate:"required"`
	}
	data := strings.Repeat(`{"name":"a","kids":[`, 499) + `{}` + strings.Repeat(`]}`, 499)
	_, err := domain.Decode[tree]([]byte(data))
	require.ErrorContains(t, err, "...")
	require.ErrorContains(t, err, "kids[0].kids[0].name: required")
	require.Less(t, len(err.Error()), 200)
	var invalid *domain.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Fields[0].Path, 499*len("kids[0].")+len("name"), "the field itself has all of it")
}

func TestAnotherFormIsSaidInTheWordsOfJSON(t *testing.T) {
	said := func(_ any, err error) string {
		require.Error(t, err)
		return err.Error()
	}
	require.Contains(t, said(domain.Decode[string]([]byte(`1`))), "(number); send a text in quotes")
	require.Contains(t, said(domain.Decode[int8]([]byte(`300`))), "(number 300); send a whole number that fits an int8")
	require.Contains(t, said(domain.Decode[float64]([]byte(`"1"`))), "(string); send a number")
	require.Contains(t, said(domain.Decode[bool]([]byte(`1`))), "(number); send true or false")
	require.Contains(t, said(domain.Decode[[]string]([]byte(`{}`))), "(object); send a list")
	require.Contains(t, said(domain.Decode[map[string]int]([]byte(`[]`))), "(array); send an object")
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	_, err := domain.Encode(Prompt{})
	require.Equal(t, []string{"text: required"}, broken(t, err))

	data, err := domain.Encode(Prompt{Text: "a < b & c"})
	require.NoError(t, err)
	require.Equal(t, `{"text":"a < b & c","count":0}`, string(data))

	data, err = domain.Encode(nil)
	require.NoError(t, err)
	require.Equal(t, "null", string(data))

	_, err = domain.Encode(map[string]any{"f": func() {}})
	require.ErrorContains(t, err, "write map[string]interface {} as JSON: json: unsupported type: func()")
}

func TestSizeIsLimited(t *testing.T) {
	fits := strings.Repeat("x", domain.MaxSize-2) // and two quotes
	data, err := domain.Encode(fits)
	require.NoError(t, err)
	require.Len(t, data, domain.MaxSize)
	back, err := domain.Decode[string](data)
	require.NoError(t, err)
	require.Equal(t, fits, back)

	_, err = domain.Encode(fits + "x")
	require.ErrorIs(t, err, domain.ErrTooLarge)
	require.ErrorContains(t, err, "a value of type string is too large: 1048577 bytes, and the limit is 1048576")
	_, err = domain.Decode[Prompt]([]byte(`"` + fits + `x"`))
	require.ErrorIs(t, err, domain.ErrTooLarge)
}

func TestRestoreReadsWhatAnOlderProgramWrote(t *testing.T) {
	got, err := domain.Restore[Prompt]([]byte(`{"gone":1,"count":-5}`))
	require.NoError(t, err)
	require.Equal(t, Prompt{Count: -5}, got)
	_, err = domain.Restore[Prompt]([]byte(`{"count":`))
	require.ErrorContains(t, err, "read stored domain_test.Prompt")
	_, err = domain.Restore[any]([]byte(`x`))
	require.ErrorContains(t, err, "read stored interface {}")
}

func TestWhatIsEncodedDecodesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Prompt{
			Text:  rapid.StringN(1, 40, -1).Draw(t, "text"),
			Count: rapid.Int8Min(0).Draw(t, "count"),
			Words: rapid.SliceOfN(rapid.StringMatching(`[a-z]+`), 1, 2).Draw(t, "words"),
		}
		data, err := domain.Encode(p)
		require.NoError(t, err)
		back, err := domain.Decode[Prompt](data)
		require.NoError(t, err)
		require.Equal(t, p, back)
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"text":"a","sub":{"text":"b","words":["c"]}}`))
	f.Add([]byte(`{"sub":{"sub":{"sub":{}}}}`))
	f.Add([]byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := domain.Decode[Prompt](data)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Zero(t, p)
			return
		}
		again, err := domain.Encode(p)
		require.NoError(t, err)
		back, err := domain.Decode[Prompt](again)
		require.NoError(t, err)
		stable, err := domain.Encode(back)
		require.NoError(t, err)
		require.Equal(t, string(again), string(stable))
	})
}

// One text is read like another whatever was read before: decoders are kept, and errors count from the text's own
// start.
func TestDecodeForgetsEarlierTexts(t *testing.T) {
	for range 3 {
		for _, text := range []string{`{"text":"a"}`, ` {"text":"a"} `, `{"text":"a"}` + "\n\n"} {
			got, err := domain.Decode[Prompt]([]byte(text))
			require.NoError(t, err)
			require.Equal(t, Prompt{Text: "a"}, got)
			canonical, err := domain.Canonical[Prompt]([]byte(text))
			require.NoError(t, err)
			require.Equal(t, `{"text":"a","count":0}`, string(canonical))
		}
		n, err := domain.Decode[int]([]byte("12"))
		require.NoError(t, err)
		require.Equal(t, 12, n)
		_, err = domain.Decode[Prompt]([]byte(`{"text":a}`))
		require.ErrorContains(t, err, "at byte 9")
		_, err = domain.Decode[Prompt]([]byte(`{"text":"a"}}`))
		require.ErrorContains(t, err, "unexpected data")
		_, err = domain.Encode(func() {})
		require.Error(t, err)
		data, err := domain.Encode(Prompt{Text: strings.Repeat("<", 40)})
		require.NoError(t, err)
		require.Contains(t, string(data), "<<<<")
	}
}
