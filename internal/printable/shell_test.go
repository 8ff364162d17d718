package printable_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/printable"
)

// A shell reads a word as what it was, whatever it holds.
func TestAWordIsOneArgumentOfAShell(t *testing.T) {
	for in, out := range map[string]string{"mail": "mail", "": "''", "two words": "'two words'", "it's": `'it'\''s'`, "$(id)": "'$(id)'", "a;b": "'a;b'"} {
		require.Equal(t, out, printable.Word(in))
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no POSIX shell on this machine")
	}
	for _, in := range []string{"mail", "", "two  words", "it's", `"$HOME"`, "$(id)", "`id`", "a;b|c&d>e<f", `back\slash`, "*?[a]", "~", "#x", "a!b", "{a,b}", "line\nline", "größe"} {
		got, err := exec.CommandContext(t.Context(), shell, "-c", "printf %s "+printable.Word(in)).Output()
		require.NoError(t, err, in)
		require.Equal(t, in, string(got))
	}
}

// A name that begins with a hyphen is no flag of the command that it is shown in.
func TestArgumentsAreNoFlags(t *testing.T) {
	require.Equal(t, "mail", printable.Arguments("mail"))
	require.Equal(t, "openai 5", printable.Arguments("openai", "5"))
	require.Equal(t, "-- --help", printable.Arguments("--help"))
	require.Equal(t, "-- 'two words' -5", printable.Arguments("two words", "-5"))
}
