package printable_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/printable"
)

// A long line is broken at spaces and its rest is indented; short lines stay as they are.
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"short\n  a", "short\n  a"},
		{"  the account of the customer has less than is needed today", "  the account of the customer has less\n      than is needed today"},
		{"  a person decides: resume it with tasq case resume 4711, or fail it", "  a person decides: resume it with\n      tasq case resume 4711, or fail it"},
		{"if it is resumed by a person (tasq case resume), pay goes on", "if it is resumed by a person\n    (tasq case resume), pay goes on"},
		{"tasq incident retry 01a2272d-2706-7001-9740-ece71038f11f", "tasq incident retry\n    01a2272d-2706-7001-9740-ece71038f11f"},
		{"at " + strings.Repeat("x", 50) + " it", "at\n    " + strings.Repeat("x", 50) + "\n    it"},
		{strings.Repeat("東京 ", 10) + "x", strings.TrimSuffix(strings.Repeat("東京 ", 8), " ") + "\n    東京 東京 x"},
	} {
		require.Equal(t, c.want, printable.Wrap(c.text, 40))
		require.Equal(t, c.text, printable.Wrap(c.text, 0), "no terminal")
		require.Equal(t, c.text, printable.Wrap(c.text, 200))
	}
}
