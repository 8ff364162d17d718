package domain_test

import (
	"encoding/json"
	"strings"
	"testing"

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
		"cut short":         {`{"text":"a"`, "unexpected EOF"},
		"not JSON":          {`{"text":a}`, "not JSON, at byte 9: invalid character 'a'"},
		"trailing value":    {`{"text":"a"} {"text":"b"}`, "something follows the JSON value"},
		"trailing garbage":  {`{"text":"a"}x`, "something follows the JSON value"},
		"trailing bracket":  {`{"text":"a"} ]`, "something follows the JSON value"},
		"misspelt field":    {`{"text":"a","cuont":3}`, `unknown field "cuont"`},
		"misspelt, nested":  {`{"text":"a","sub":{"txt":"b"}}`, `unknown field "txt"`},
		"wrong type":        {`{"text":"a","count":"3"}`, "count: type=int8"},
		"wrong type inside": {`{"text":"a","sub":{"text":1}}`, "sub.text: type=string"},
		"too big a number":  {`{"text":"a","count":300}`, "count: type=int8"},
		"wrong shape":       {`["a"]`, "cannot unmarshal array"},
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
	require.ErrorContains(t, err, "a string is too large: 1048577 bytes, and the limit is 1048576")
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

// One text is read like another whatever was read before: decoders are kept, and errors count from the text's own start.
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
		require.ErrorContains(t, err, "something follows")
		_, err = domain.Encode(func() {})
		require.Error(t, err)
		data, err := domain.Encode(Prompt{Text: strings.Repeat("<", 40)})
		require.NoError(t, err)
		require.Contains(t, string(data), "<<<<")
	}
}
