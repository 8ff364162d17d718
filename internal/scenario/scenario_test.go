package scenario_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
)

const small = `# one task
# origin: nowhere

define
workflow w

  start s # a blank line above belongs to the net
----
ok

# the first
# case
start w as first
----

item complete A.1.2 to=B,c case=first/S.1.1
----
error: not-found`

func parseFile(t testing.TB, text string) *scenario.File {
	t.Helper()
	f, err := scenario.Parse("small.txt", []byte(text))
	require.NoError(t, err)
	return f
}

func TestParseScenario(t *testing.T) {
	f := parseFile(t, small)
	require.Equal(t, "small.txt", f.Name)
	require.Len(t, f.Commands, 3)

	define := f.Commands[0]
	require.Equal(t, net.Pos{File: "small.txt", Line: 4}, define.Pos)
	require.Empty(t, define.Comments, "a blank line parts the comment from the command")
	require.Equal(t, []string{"define"}, define.Words)
	require.Equal(t, []string{"workflow w", "", "  start s # a blank line above belongs to the net"}, define.Input)
	require.Equal(t, []string{"ok"}, define.Expected)
	workflows, err := define.Workflows()
	require.NoError(t, err)
	require.Equal(t, net.Pos{File: "small.txt", Line: 7}, workflows[0].Def.Conditions[0].Pos)

	start := f.Commands[1]
	require.Equal(t, []string{"# the first", "# case"}, start.Comments)
	require.Equal(t, []string{"start", "w", "as", "first"}, start.Words)
	require.Empty(t, start.Input)
	require.Empty(t, start.Expected, "an output that is still to be recorded")

	item := f.Commands[2]
	require.Equal(t, []string{"item", "complete", "A.1.2"}, item.Words)
	require.Equal(t, []scenario.Arg{{Key: "to", Value: "B,c"}, {Key: "case", Value: "first/S.1.1"}}, item.Args)
	require.Equal(t, []string{"error: not-found"}, item.Expected)
}

func TestParseScenarioOfAnEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing yet\n"} {
		require.Empty(t, parseFile(t, text).Commands)
	}
}

func TestParseScenarioTakesOtherLineEnds(t *testing.T) {
	f := parseFile(t, "show case\r\n----\r\nstarted\r\n \t\r\nshow tasks\r\n---- \r\nA enabled 1")
	require.Len(t, f.Commands, 2)
	require.Equal(t, []string{"started"}, f.Commands[0].Expected)
	require.Equal(t, []string{"A enabled 1"}, f.Commands[1].Expected)
}

func TestParseScenarioReportsEveryError(t *testing.T) {
	tests := map[string]struct{ text, errors string }{
		"no separator": {
			"show case\nstarted\n\nshow tasks\n----\nok\n",
			`bad.txt:1: "show case" has no "----" line; expected one between a command and its output`,
		},
		"no separator, twice": {
			"show case\nstarted\n\n# then\nstart w\n",
			`bad.txt:1: "show case" has no "----" line; expected one between a command and its output
bad.txt:5: "start w" has no "----" line; expected one between a command and its output`,
		},
		"a net without an end": {
			"\ndefine\nworkflow w\n\n",
			`bad.txt:2: "define" has no "----" line; expected one between a command and its output`,
		},
		"no command": {
			"----\nok\n\nshow case\n----\nok\n",
			`bad.txt:1: "----" without a command; an output ends at the first blank line`,
		},
		"no blank line": {
			"show case\n----\nstarted\nshow tasks\n----\nA enabled 1\n",
			`bad.txt:5: "----" stands inside an output; expected a blank line before the next command`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Parse("bad.txt", []byte(test.text))
			require.EqualError(t, err, test.errors)
			var one *scenario.SyntaxError
			require.True(t, errors.As(err, &one))
		})
	}
}

func TestRewriteChangesTheOutputsAlone(t *testing.T) {
	const text = "# a\n\n\nshow case   \n----  \nstarted\n  \n" +
		"# b\nshow tasks\n----\n\n\n\n" +
		"show items\n----\nA.1.1 started\nB.1.1 started"
	replace := func(old, with string) string { return strings.Replace(text, old, with, 1) }
	f := parseFile(t, text)
	tests := map[string]struct {
		outputs [][]string
		want    string
	}{
		"nothing":     {nil, text},
		"all nil":     {[][]string{nil, nil, nil}, text},
		"equal":       {[][]string{{"started"}, {}, {"A.1.1 started", "B.1.1 started"}}, text},
		"the first":   {[][]string{{"failed", "x"}}, replace("started\n", "failed\nx\n")},
		"a new one":   {[][]string{nil, {"A enabled 1"}}, replace("tasks\n----\n", "tasks\n----\nA enabled 1\n")},
		"the last":    {[][]string{nil, nil, {"(none)"}}, replace("A.1.1 started\nB.1.1 started", "(none)\n")},
		"to nothing":  {[][]string{{}}, replace("started\n", "")},
		"blank lines": {[][]string{{"", "a", " ", "b"}}, replace("started\n", "a\nb\n")},
		"too many":    {[][]string{nil, nil, nil, {"x"}}, text},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, string(f.Rewrite(test.outputs)))
		})
	}
}

func TestRewriteKeepsTheEndsOfLines(t *testing.T) {
	for text, want := range map[string]string{
		"crash\r\n----\r\nno\r\n\r\n": "crash\r\n----\r\nok\r\nok\r\n\r\n",
		"crash\n----\r\n":             "crash\n----\r\nok\r\nok\r\n",
		"crash\n----":                 "crash\n----\nok\nok\n",
		"crash\r\n----\r":             "crash\r\n----\r\nok\r\nok\r\n",
		"crash\n----\nno":             "crash\n----\nok\nok\n",
	} {
		require.Equal(t, want, string(parseFile(t, text).Rewrite([][]string{{"ok", "ok"}})), "%q", text)
	}
}

func ExampleFile_Rewrite() {
	f, err := scenario.Parse("a.txt", []byte("# a new file\nshow case\n----\n\nshow items\n----\nA.1.1 started\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(f.Rewrite([][]string{{"started"}, {"(none)"}})))
	// Output:
	// # a new file
	// show case
	// ----
	// started
	//
	// show items
	// ----
	// (none)
}

func ExampleDiff() {
	fmt.Print(scenario.Diff([]string{"A completed 1", "B enabled 1"}, []string{"A completed 1", "B disabled 0"}))
	// Output:
	// --- expected
	// +++ printed
	// @@ -1,2 +1,2 @@
	//  A completed 1
	// -B enabled 1
	// +B disabled 0
}

func TestDiff(t *testing.T) {
	require.Empty(t, scenario.Diff(nil, nil))
	require.Empty(t, scenario.Diff([]string{"ok"}, []string{"ok"}))
	require.Equal(t, "--- expected\n+++ printed\n@@ -0,0 +1,1 @@\n+ok\n", scenario.Diff(nil, []string{"ok"}))
	require.Equal(t, "--- expected\n+++ printed\n@@ -1,1 +0,0 @@\n-ok\n", scenario.Diff([]string{"ok"}, nil))
}

func TestParseScenarioTakesHugeFiles(t *testing.T) {
	const n = 100_000
	shapes := map[string]string{
		"commands":       strings.Repeat("crash\n----\nok\n\n", n),
		"input":          "define\n" + strings.Repeat("\nworkflow w", n) + "\n----\nok",
		"output":         "crash\n----\n" + strings.Repeat("ok\n", n),
		"comments":       strings.Repeat("#\n", n) + "crash\n----\n",
		"words":          strings.Repeat("a ", n) + "\n----\n",
		"arguments":      "crash " + strings.Repeat("to=a ", n) + "\n----\n",
		"other keys":     "crash" + strings.Repeat(" case=a", n) + "\n----\n",
		"path":           "crash case=a" + strings.Repeat("/b.1.1", n) + "\n----\n",
		"separators":     strings.Repeat("----\n", n),
		"no separators":  strings.Repeat("crash\n\n", n),
		"defines":        strings.Repeat("define\n", n),
		"spaces":         strings.Repeat(" ", 10*n) + "crash" + strings.Repeat(" ", 10*n) + "\n----\nok",
		"carriage":       strings.Repeat("\r", 10*n) + "crash\n----",
		"route":          "do a to=" + strings.Repeat(",", 10*n) + "\n----\n",
		"item":           "do a." + strings.Repeat("1", 10*n) + "\n----\n",
		"no end of line": strings.Repeat("a", 10*n),
	}
	for name, text := range shapes {
		t.Run(name, func(t *testing.T) {
			f, err := scenario.Parse("huge.txt", []byte(text))
			if err != nil {
				return
			}
			for _, c := range f.Commands {
				if _, err := c.Action(); err != nil {
					require.Less(t, len(err.Error()), 300)
				}
			}
			require.Equal(t, text, string(f.Rewrite(nil)))
		})
	}
}
