package domain_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
)

func TestOnlyJSONInUTF8IsTaken(t *testing.T) {
	for _, good := range []string{`1`, `null`, `"ü"`, `{"a":["\ud800"]}`, " [ ] "} {
		require.NoError(t, domain.CheckJSON([]byte(good)), good)
	}
	for bad, want := range map[string]string{
		"\"a\xff\"": "invalid JSON: not UTF-8, at byte 2",
		"":          "invalid JSON: not JSON: unexpected end of JSON input",
		`{"a`:       "invalid JSON: not JSON: unexpected end of JSON input",
		`1 2`:       "invalid JSON: not JSON: invalid character '2' after top-level value",
	} {
		err := domain.CheckJSON([]byte(bad))
		_, ok := errors.AsType[*domain.InvalidError](err)
		require.True(t, ok, "%q", bad)
		require.EqualError(t, err, want)
	}
	_, err := domain.Decode[string]([]byte("\"a\xff\""))
	require.EqualError(t, err, "invalid string: not UTF-8, at byte 2", "encoding/json would read a\uFFFD")
	for _, raw := range []string{"\"\xff\"", `{`} {
		_, err = domain.Encode(map[string]any{"a": json.RawMessage(raw)})
		_, ok := errors.AsType[*domain.InvalidError](err)
		require.True(t, ok, "%q: %v", raw, err)
	}
}
