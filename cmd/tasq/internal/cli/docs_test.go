package cli_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
	"github.com/tasq-dev/tasq/store/sqlite"
)

var picture = regexp.MustCompile("(?s)```net image=(\\w+)(?: marking=(\\S+))?(?: busy=(\\S+))?\n(.*?)```")

// The pictures of docs/drawings.md are those of the nets above them. A text that is empty stands for the one before.
func TestPicturesOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/drawings.md")
	require.NoError(t, err)
	found := picture.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, found)
	text := ""
	for _, m := range found {
		if m[4] != "" {
			text = m[4]
		}
		parsed, err := scenario.ParseNotation(net.Pos{File: "drawings.md"}, text)
		require.NoError(t, err)
		n, err := net.Compile(parsed[0].Def)
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, svg.Draw(&b, n, moment(t, n, m[2], m[3])))
		path := "../../../../docs/images/" + m[1] + ".svg"
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		}
		there, err := os.ReadFile(path)
		require.NoError(t, err)
		if string(there) != b.String() {
			t.Errorf("%s is not what is drawn; run go test -run TestPicturesOfTheDocs -update, and look at it", path)
		}
		require.Contains(t, string(page), "(images/"+m[1]+".svg)")
	}
}

// The scenario of docs/scenarios.md prints what it says.
func TestScenarioOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/scenarios.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(page), "```scenario\n")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "```")
	require.True(t, ok)
	f, err := scenario.Parse("scenarios.md", []byte(text))
	require.NoError(t, err)
	result, err := scenario.Run(t.Context(), f, sqlite.Memory())
	require.NoError(t, err)
	require.NoError(t, result.Broken)
	require.Empty(t, result.Mismatches)
}

// moment reads a marking like "a:2,b->c:1" and a list of busy tasks.
func moment(t *testing.T, n *net.Net, marking, busy string) svg.Options {
	var o svg.Options
	for word := range strings.SplitSeq(marking, ",") {
		if name, tokens, ok := strings.Cut(word, ":"); ok {
			c, known := n.ConditionByName(name)
			require.True(t, known, name)
			k, err := strconv.Atoi(tokens)
			require.NoError(t, err)
			if o.Marking == nil {
				o.Marking = make(net.Marking, n.NumConditions())
			}
			o.Marking[c] = int32(k)
		}
	}
	if busy != "" {
		task, known := n.TaskByName(busy)
		require.True(t, known, busy)
		o.Busy = net.NewBits(n.NumTasks())
		o.Busy.Add(int(task))
	}
	return o
}
