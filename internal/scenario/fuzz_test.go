package scenario_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
)

// Whatever the text, a net is read or refused with lines that exist; one that is read can be written, reads back as the
// same, and is not much longer than what it came from.
func FuzzNotation(f *testing.F) {
	f.Add(everything)
	f.Fuzz(func(t *testing.T, text string) {
		workflows, err := scenario.ParseNotation(net.Pos{File: "fuzz.net"}, text)
		if err != nil {
			require.Nil(t, workflows)
			checkErrors(t, err, text)
			return
		}
		canonical := scenario.Format(workflows)
		checkSize(t, canonical, text)
		for _, w := range workflows {
			require.Len(t, w.Tasks, len(w.Def.Tasks))
			require.Len(t, w.Problems(), len(w.Missing))
		}
		back, err := scenario.ParseNotation(net.Pos{}, canonical)
		require.NoError(t, err, canonical)
		require.Equal(t, canonical, scenario.Format(back), "the canonical form is its own")
		require.Equal(t, withoutPlaces(workflows), withoutPlaces(back))
	})
}

// checkSize bounds a text by what it was made from: a workflow of one statement a name, each with its keyword.
func checkSize(t *testing.T, made, from string) {
	require.LessOrEqual(t, len(made), 16*len(from)+16)
}

// checkErrors holds errors to their form: each has a line of the text, and they come in the order of the lines.
func checkErrors(t *testing.T, err error, text string) {
	var all scenario.SyntaxErrors
	require.True(t, errors.As(err, &all))
	require.NotEmpty(t, all)
	last := 1
	for _, e := range all {
		require.GreaterOrEqual(t, e.Line, last)
		require.LessOrEqual(t, e.Line, strings.Count(text, "\n")+1)
		require.Less(t, len(e.Text), 500)
		require.NotContains(t, e.Text, "\n")
		last = e.Line
	}
}

// Whatever the text, a scenario is read or refused with lines that exist; rewriting one with its own outputs changes no
// byte, and rewriting it with others changes nothing but them.
func FuzzScenario(f *testing.F) {
	f.Add([]byte(small))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := scenario.Parse("fuzz.txt", text)
		if err != nil {
			require.Nil(t, file)
			checkErrors(t, err, string(text))
			return
		}
		checkRewrite(t, file, text)
		for _, c := range file.Commands {
			checkCommand(t, c)
		}
	})
}

func checkRewrite(t *testing.T, file *scenario.File, text []byte) {
	var own, others [][]string
	for i, c := range file.Commands {
		own = append(own, c.Expected)
		others = append(others, []string{fmt.Sprintf("other %d", i), "lines"})
	}
	require.True(t, bytes.Equal(text, file.Rewrite(own)))
	require.True(t, bytes.Equal(text, file.Rewrite(nil)))
	changed := file.Rewrite(others)
	back, err := scenario.Parse("fuzz.txt", changed)
	require.NoError(t, err)
	require.Len(t, back.Commands, len(file.Commands))
	for i, c := range back.Commands {
		require.Equal(t, others[i], c.Expected)
		require.Equal(t, file.Commands[i].Words, c.Words)
		require.Equal(t, file.Commands[i].Args, c.Args)
		require.Equal(t, file.Commands[i].Input, c.Input)
		require.Equal(t, file.Commands[i].Comments, c.Comments)
		require.NotEmpty(t, scenario.Diff(file.Commands[i].Expected, append(c.Expected, "more")))
	}
	require.True(t, bytes.Equal(changed, back.Rewrite(others)))
}

func checkCommand(t *testing.T, c *scenario.Command) {
	a, err := c.Action()
	if err != nil {
		var bad *scenario.SyntaxError
		require.True(t, errors.As(err, &bad))
		require.Equal(t, c.Pos, net.Pos{File: bad.File, Line: bad.Line})
		return
	}
	if !a.Case.IsZero() {
		path, err := scenario.ParseCasePath(a.Case.String())
		require.NoError(t, err)
		require.Equal(t, a.Case, path)
	}
	if a.Item.Task != "" {
		ref, err := scenario.ParseItemRef(a.Item.String())
		require.NoError(t, err)
		require.Equal(t, a.Item, ref)
		require.Contains(t, c.Words, a.Item.String())
	}
	if a.Verb == scenario.VerbDefine {
		if _, err := c.Workflows(); err != nil {
			var all scenario.SyntaxErrors
			require.True(t, errors.As(err, &all))
		}
	}
}
