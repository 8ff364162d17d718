package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

const billNet = "workflow bill\n start s\n end e\n task charge policy=incident\n flow s -> charge\n flow charge -> e\n"

// cases counts the cases of a database.
func casesIn(t *testing.T, at string) (n int) {
	t.Helper()
	s, err := sqlite.File(at).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, err := range store.AllCases(t.Context(), s, store.CaseFilter{}) {
		require.NoError(t, err)
		n++
	}
	return n
}

// A file starts a case for each of its lines. What is refused has the number of its line, and a repeated command starts the others only.
func TestAFileStartsACaseForEachLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, net, file := filepath.Join(dir, "s.db"), filepath.Join(dir, "bill.net"), filepath.Join(dir, "bills.ndjson")
	require.NoError(t, os.WriteFile(net, []byte(billNet), 0o600))
	long := `"` + strings.Repeat("x", domain.MaxSize) + `"`
	require.NoError(t, os.WriteFile(file, []byte("{\"n\":1}\n\n{\"n\":\n"+long+"\r\n{\"n\":5}"), 0o600))
	code, out, errs := tasq(t, at, "case", "start", "bill", "--net", net, "--create", "--file", file, "--key", "import")
	require.Equal(t, ExitRefused, code, errs)
	require.Equal(t, "2 cases started, 2 lines refused\n", out)
	require.Contains(t, errs, "line 3: ")
	require.Contains(t, errs, "invalid JSON: unexpected end of JSON input")
	require.Contains(t, errs, "line 4: the line has more than 1048576 bytes")
	require.Equal(t, 2, casesIn(t, at))

	require.NoError(t, os.WriteFile(file, []byte("{\"n\":1}\n\n{\"n\":3}\n{\"n\":4}\n{\"n\":6}\n"), 0o600))
	code, out, errs = tasq(t, at, "case", "start", "bill", "--file", file, "--key", "import", "-o", "json")
	require.Equal(t, ExitRefused, code, errs)
	require.Contains(t, out, `"started":3,"refused":1,"lines":[{"line":5,"code":"key-reused"`)
	require.Equal(t, 4, casesIn(t, at))

	code, _, errs = tasq(t, at, "case", "start", "bill", "--file", file, "--data", "1")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "--file has those of many")
}

// A dry run of a file counts what would start and what would be refused, with and without an owner of the database, and starts nothing.
// The starts of a file that are left with --queue happen when a process owns the database next.
func TestTheStartsOfAFileAreTriedOrLeft(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		file := filepath.Join(t.TempDir(), "bills.ndjson")
		require.NoError(t, os.WriteFile(file, []byte("{\"n\":1}\n{\n{\"n\":3}\n"), 0o600))
		parsed, err := scenario.ParseNotation(posOf("test"), billNet)
		require.NoError(t, err)
		defs, _, err := scenario.Compile(parsed, nil)
		require.NoError(t, err)
		open := func() *engine.Engine {
			e, err := engine.Open(t.Context(), db, defs[0])
			require.NoError(t, err)
			return e
		}
		cases := func(e *engine.Engine) (n int) {
			for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
				require.NoError(t, err)
				require.Equal(t, "left", c.Labels["how"])
				n++
			}
			return n
		}
		try := func() {
			t.Helper()
			code, out, errs := tasq(t, at, "case", "start", "bill", "--file", file, "--dry-run", "--timeout", "1m")
			require.Equal(t, ExitRefused, code, errs)
			require.Equal(t, "2 cases would start, 1 line refused\n", out)
			require.Contains(t, errs, "line 2: ")
			code, out, errs = tasq(t, at, "case", "start", "bill", "--file", file, "--once-per", "day", "--dry-run", "--timeout", "1m", "-o", "json")
			require.Equal(t, ExitRefused, code, errs)
			require.Contains(t, out, `{"started":0,"refused":3,"lines":[{"line":1,`, "the engine checks each line: the workflow has no business key")
		}
		e := open()
		try()
		require.Zero(t, cases(e))
		require.NoError(t, e.Close())
		try()
		code, out, errs := tasq(t, at, "case", "start", "bill", "--file", file, "--queue", "--label", "how=left")
		require.Equal(t, ExitRefused, code, errs)
		require.Contains(t, out, "2 starts left in ")
		require.Contains(t, out, " for the program that owns it next, 1 line refused\n")
		e = open()
		defer func() { require.NoError(t, e.Close()) }()
		require.Eventually(t, func() bool { return cases(e) == 2 }, time.Minute, 10*time.Millisecond)

		code, _, errs = tasq(t, at, "case", "start", "bill", "--file", file, "--queue", "--dry-run")
		require.Equal(t, ExitUsage, code)
		require.Contains(t, errs, "--dry-run and --queue cannot be combined")
	})
}

// The process that owns the database starts them.
func TestTheOwnerStartsTheCasesOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, file := filepath.Join(dir, "s.db"), filepath.Join(dir, "bills.ndjson")
	parsed, err := scenario.ParseNotation(posOf("test"), billNet)
	require.NoError(t, err)
	defs, _, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	e, err := engine.Open(t.Context(), sqlite.File(at), defs[0])
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("{\"n\":1}\n", 40)), 0o600))
	code, out, errs := tasq(t, at, "case", "start", "bill", "--file", file, "--timeout", "1m")
	require.Zero(t, code, errs)
	require.Equal(t, "40 cases started, 0 lines refused\n", out)
}
