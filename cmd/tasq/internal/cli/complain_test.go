package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An argument that is a whole file does not fill the terminal with its own error, which still says what to do.
func TestAnErrorDoesNotRepeatAHugeArgument(t *testing.T) {
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{strings.Repeat("x", 10_000)}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, Registry{})
	require.Equal(t, ExitUsage, code)
	require.Less(t, errs.Len(), 1000)
	require.Contains(t, errs.String(), `tasq has no command "xxxxx`)
	require.Contains(t, errs.String(), `there is cases, show`)
	require.Equal(t, "a path "+strings.Repeat("y", maxWord)+" stays", shortened("a path "+strings.Repeat("y", maxWord)+" stays"))
}
