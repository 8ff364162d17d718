package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A filter that is not UTF-8 is refused, on each store alike.
func TestAFilterIsText(t *testing.T) {
	t.Parallel()
	code, _, errs := tasq(t, t.TempDir()+"/s.db", "cases", "--key", "\xff")
	require.Equal(t, ExitUsage, code, errs)
	require.Contains(t, errs, `--key "\xff" is not UTF-8`)
}

// A word that is not UTF-8 is no id and no business key, on each store alike.
func TestAWordIsText(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		e, err := engine.Open(t.Context(), db, loading(t))
		require.NoError(t, err)
		require.NoError(t, e.Close())
		for _, args := range [][]string{{"why", "a\xff"}, {"show", "a\xff"}, {"case", "cancel", "a\xff"}} {
			code, _, errs := tasq(t, at, args...)
			require.Equal(t, ExitUsage, code, errs)
			require.Contains(t, errs, "nor the business key of one")
		}
		code, _, errs := tasq(t, at, "cases", "--label", "ship=a\xff")
		require.Equal(t, ExitUsage, code, errs)
		require.Contains(t, errs, `the value "a\xff" is not UTF-8`)
	})
}

// A command with a text that is not UTF-8 is refused before it is left with the program that owns the database, as JSON has no such text.
func TestInvalidUTF8IsNotSentToOwner(t *testing.T) {
	t.Parallel()
	at := t.TempDir() + "/s.db"
	e, err := engine.Open(t.Context(), sqlite.File(at), loading(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for _, args := range [][]string{
		{"case", "start", "loading", "--data", `"ada"`, "--business-key", "\xff"},
		{"case", "start", "loading", "--data", `"ada"`, "--label", "ship=\xff"},
		{"case", "start", "loading", "--data", `"ada"`, "--key", "\xff"},
		{"event", "broadcast", "t\xff"},
		{"queue", "pause", "q\xff"},
	} {
		code, _, errs := tasq(t, at, args...)
		require.Equal(t, ExitUsage, code, "%q: %s", args, errs)
		require.Contains(t, errs, "UTF-8", "%q", args)
	}
}
