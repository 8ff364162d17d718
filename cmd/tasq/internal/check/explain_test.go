package check_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

var update = flag.Bool("update", false, "write the sections of the codes into docs/verification.md")

// Every code of package net is explained, by an example that really has it.
func TestEveryCodeIsExplainedByAnExample(t *testing.T) {
	all := slices.Concat(verify.FindingCodes(), verify.WarningCodes(), net.ProblemCodes(), check.NoteCodes())
	slices.Sort(all)
	var explained []net.Code
	for _, x := range check.Explanations() {
		explained = append(explained, x.Code)
	}
	slices.Sort(explained)
	require.Equal(t, slices.Compact(all), explained)

	for _, x := range check.Explanations() {
		t.Run(string(x.Code), func(t *testing.T) {
			require.Regexp(t, `^[A-Z].*\.$`, x.Title)
			require.Greater(t, len(x.Meaning), 40)
			f := check.Read(x.File, strings.NewReader(x.Example), check.Options{})
			require.NoError(t, f.Err)
			i := slices.IndexFunc(f.Messages(), func(m check.Message) bool { return m.Code == string(x.Code) })
			require.GreaterOrEqual(t, i, 0, "the example has no such thing: %v", f.Messages())
			m := f.Messages()[i]
			require.Equal(t, (x.Kind == check.KindWarning || x.Kind == check.KindNote) && x.Code != verify.Undecided, m.Level == check.Warning)
			require.Positive(t, m.Pos.Line)

			var b strings.Builder
			require.NoError(t, x.Write(&b))
			require.Contains(t, b.String(), x.Title)
			require.Contains(t, b.String(), "    tasq check "+x.File+"\n\n    "+x.File)
			for line := range strings.Lines(x.Output()) {
				require.Contains(t, b.String(), line)
			}
			again, ok := check.Explain(x.Code)
			require.True(t, ok)
			require.Equal(t, x, again)
		})
	}
	_, ok := check.Explain("no-such-code")
	require.False(t, ok)
}

func TestCodesAreListed(t *testing.T) {
	var b strings.Builder
	require.NoError(t, check.WriteCodes(&b))
	for _, x := range check.Explanations() {
		require.Regexp(t, `(?m)^  `+string(x.Code)+` +`, b.String())
	}
	require.Contains(t, b.String(), "findings\n  dead-task")
	require.Contains(t, b.String(), "warnings\n")
	require.Contains(t, b.String(), "problems\n")
}

// docs/verification.md has a section for every code, with the example and what checking it prints.
func TestDocsShowEveryCode(t *testing.T) {
	const path, begin, end = "../../../../docs/verification.md", "<!-- codes -->\n", "<!-- end of codes -->\n"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	written, after, found := strings.Cut(rest, end)
	require.True(t, found)
	var b strings.Builder
	for i, x := range check.Explanations() {
		if i == 0 || check.Explanations()[i-1].Kind != x.Kind {
			kind := x.Kind.String()
			b.WriteString("\n### " + strings.ToUpper(kind[:1]) + kind[1:] + "s\n")
		}
		b.WriteString("\n#### " + string(x.Code) + "\n\n" + x.Title + " " + x.Meaning + "\n\n```\n" +
			strings.TrimRight(x.Example, "\n") + "\n```\n```\n$ tasq check " + x.File + "\n" + x.Output() + "```\n")
	}
	b.WriteString("\n")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644))
		return
	}
	require.Equal(t, b.String(), written, "write them with: go test ./cmd/tasq/internal/check -run Docs -update")
}
