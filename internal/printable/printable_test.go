package printable_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/printable"
)

func TestLinesKeepLineBreaksAndTabs(t *testing.T) {
	require.Equal(t, "a b c\uFFFD[2J\uFFFD\uFFFD d", printable.Line("a\tb\nc\x1b[2J\u009b\u202e\u00a0d"))
	require.Equal(t, "a\tb\n\uFFFDc", printable.Lines("a\tb\n\u2066c"))
	require.Equal(t, "Grüße, 世界 ☃", printable.Line("Grüße, 世界 ☃"))
}

// What is shown on no terminal is written as an escape, also in payloads that are JSON already, and read back as it was.
func TestHiddenCharactersAreEscaped(t *testing.T) {
	all := "\u007f\u0085\u009b\u200d\u200e\u200f\u061c\u2028\u2029\u202a\u202e\u2066\u2069\ufeff\U000e0041"
	var b strings.Builder
	payload := json.RawMessage(`{"raw":"` + all + `"}`)
	require.NoError(t, printable.NewEncoder(&b).Encode(map[string]any{"text": "A->B & \x1b ü世" + all, "payload": payload}))
	for _, r := range b.String() {
		require.True(t, r == '\n' || unicode.IsPrint(r), fmt.Sprintf("%U in %s", r, b.String()))
	}
	require.Contains(t, b.String(), `A->B & \u001b ü世\u007f\u0085\u009b`)
	require.Contains(t, b.String(), `\udb40\udc41`)
	var back struct {
		Text    string
		Payload struct{ Raw string }
	}
	require.NoError(t, json.Unmarshal([]byte(b.String()), &back))
	require.Equal(t, "A->B & \x1b ü世"+all, back.Text)
	require.Equal(t, all, back.Payload.Raw)
}

// A document has no hidden characters either, and is read back as it was.
func TestXMLHasNoHiddenCharacters(t *testing.T) {
	text := "A<b>&\"'\t\n ü世\u009b\u202e\u2028\ufeff\U000e0041"
	var b strings.Builder
	require.NoError(t, printable.XML(&b, text+"\x1b"))
	for _, r := range b.String() {
		require.True(t, unicode.IsPrint(r), fmt.Sprintf("%U in %s", r, b.String()))
	}
	var back struct {
		Text string `xml:"text,attr"`
	}
	require.NoError(t, xml.Unmarshal([]byte(`<a text="`+b.String()+`"/>`), &back))
	require.Equal(t, text+"\ufffd", back.Text)
}

func TestIndentedJSON(t *testing.T) {
	var b strings.Builder
	require.NoError(t, printable.NewEncoder(&b).Indent("  ").Encode(map[string]string{"a": "\u202e"}))
	require.Equal(t, "{\n  \"a\": \"\\u202e\"\n}\n", b.String())
	require.Error(t, printable.NewEncoder(&b).Encode(func() {}))
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m59s",
		90 * time.Second: "1m30s", 5*time.Minute + 900*time.Millisecond: "5m",
		time.Hour: "1h", 90 * time.Minute: "1h30m", 24 * time.Hour: "1d", 50 * time.Hour: "2d2h", 400 * 24 * time.Hour: "400d",
		-5 * time.Second: "-5s", -2 * time.Hour: "-2h",
	} {
		require.Equal(t, want, printable.Duration(d), d)
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 12*time.Millisecond + 900*time.Microsecond: "12ms", 999 * time.Millisecond: "999ms", time.Second: "1.0s", 9999 * time.Millisecond: "9.9s",
		10 * time.Second: "10s", 90 * time.Second: "1m30s", 90 * time.Minute: "1h30m", -time.Millisecond: "0s",
	} {
		require.Equal(t, want, strings.TrimPrefix(printable.Took(d), "-"), d)
	}
}

func TestWithArticle(t *testing.T) {
	for word, want := range map[string]string{"event": "an event", "case": "a case", "int": "an int"} {
		require.Equal(t, want, printable.WithArticle(word))
	}
}
