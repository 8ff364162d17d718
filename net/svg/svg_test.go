package svg_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
)

var update = flag.Bool("update", false, "write the pictures into testdata")

func draw(t require.TestingT, n *net.Net, o svg.Options) string {
	var b strings.Builder
	require.NoError(t, svg.Draw(&b, n, o))
	return b.String()
}

// text is what a reader of the picture reads, element by element; reading it checks that the picture is well-formed.
func text(t require.TestingT, picture, element string) []string {
	var found []string
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == element {
			var s string
			require.NoError(t, d.DecodeElement(&s, &start))
			found = append(found, s)
		}
	}
}

// review has everything that is drawn in a way of its own.
func review() *net.Net {
	return net.MustCompile(&net.Definition{
		Name:       "review",
		Conditions: []net.Condition{{Name: "begin", Role: net.Start}, {Name: "done", Role: net.End}, {Name: "waiting"}},
		Tasks: []net.Task{
			{Name: "draft"},
			{Name: "ask", Kind: net.Routing, Split: net.Or, Join: net.Xor},
			{Name: "vote", Kind: net.Composite, Of: []string{"poll", "count"}},
			{Name: "read"},
			{Name: "decide", Join: net.Or, Split: net.Xor, Cancels: []string{"waiting", "remind"}},
			{Name: "remind"},
			{Name: "publish", Join: net.Xor},
		},
		Flows: []net.Flow{{From: "begin", To: "draft"}, {From: "draft", To: "ask"}, {From: "ask", To: "vote"},
			{From: "ask", To: "read"}, {From: "ask", To: "waiting"}, {From: "waiting", To: "remind"},
			{From: "vote", To: "decide"}, {From: "read", To: "decide"}, {From: "remind", To: "publish"},
			{From: "decide", To: "publish"}, {From: "decide", To: "ask"}, {From: "publish", To: "done"}},
	})
}

func line() *net.Net {
	return net.MustCompile(&net.Definition{
		Name: "line", Conditions: []net.Condition{{Name: "in", Role: net.Start}, {Name: "out", Role: net.End}},
		Tasks: []net.Task{{Name: "work"}},
		Flows: []net.Flow{{From: "in", To: "work"}, {From: "work", To: "out"}},
	})
}

func marked() svg.Options {
	n := review()
	o := svg.Options{Title: "A review on Monday",
		Marking: make(net.Marking, n.NumConditions()), Busy: net.NewBits(n.NumTasks()),
		Labels: map[string]string{"vote": "Vote on it"},
		Flows:  map[[2]string]string{{"decide", "ask"}: "more is needed", {"decide", "publish"}: "otherwise"}}
	for name, tokens := range map[string]int32{"waiting": 3, "ask->read": 1, "begin": 7} {
		c, _ := n.ConditionByName(name)
		o.Marking[c] = tokens
	}
	t, _ := n.TaskByName("vote")
	o.Busy.Add(int(t))
	return o
}

// The pictures in testdata were looked at. go test -update writes them again.
func TestPicturesStayAsTheyWere(t *testing.T) {
	for name, picture := range map[string]string{
		"line":   draw(t, line(), svg.Options{NoLegend: true}),
		"review": draw(t, review(), svg.Options{}),
		"marked": draw(t, review(), marked()),
	} {
		path := filepath.Join("testdata", name+".svg")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(picture), 0o644))
		}
		golden, err := os.ReadFile(path)
		require.NoError(t, err)
		if string(golden) != picture {
			t.Errorf("%s has changed; run go test -update, and look at it", path)
		}
	}
}

func TestEqualInputGivesEqualBytes(t *testing.T) {
	require.Equal(t, draw(t, review(), marked()), draw(t, review(), marked()))
}

func TestAPictureSaysInWordsWhatItShows(t *testing.T) {
	picture := draw(t, review(), marked())
	require.Equal(t, "A review on Monday", text(t, picture, "title")[0])
	require.Equal(t, []string{"Workflow review from begin to done: 7 tasks, 3 conditions, 1 cancellation region; " +
		"tokens in begin, waiting, ask->read; busy: vote."}, text(t, picture, "desc"))
	tips := text(t, picture, "title")[1:]
	require.Subset(t, tips, []string{
		"canceled when decide completes", "start condition begin: 7 tokens", "end condition done",
		"condition ask->read: 1 token", "task draft", "routing task ask; xor-join; or-split",
		"composite task vote; runs poll, count; busy",
		"task decide; or-join; xor-split; cancels waiting, remind",
	})
	texts := text(t, picture, "text")
	require.Subset(t, texts,
		[]string{"Vote on it", "runs poll, count", "more is needed", "otherwise", "7", "canceled by decide"})
	require.NotContains(t, texts, "vote", "it has a label")
	require.Contains(t, picture, `role="img"`)
	require.Contains(t, picture, `prefers-color-scheme:dark`)

	picture = draw(t, review(), svg.Options{NoLegend: true})
	require.NotContains(t, text(t, picture, "text"), "canceled by decide")
	require.Equal(t, "review", text(t, picture, "title")[0])
}

// A name that stands for nothing in a file is not written; what points at the element shows it. A label is written all
// the same.
func TestUnnamedElementsShowNoText(t *testing.T) {
	o := marked()
	o.Unnamed = map[string]bool{"begin": true, "waiting": true, "ask": true, "vote": true, "decide": true}
	picture := draw(t, review(), o)
	texts := text(t, picture, "text")
	for _, name := range []string{"begin", "waiting", "ask", "decide", "canceled by decide"} {
		require.NotContains(t, texts, name)
	}
	require.Subset(t, texts, []string{"Vote on it", "canceled by the task with this cross", "draft", "done"})
	tips := text(t, picture, "title")
	require.Subset(t, tips, []string{"start condition begin: 7 tokens", "condition waiting: 3 tokens",
		"routing task ask; xor-join; or-split"})
	require.Less(t, len(draw(t, review(), svg.Options{Unnamed: o.Unnamed})), len(draw(t, review(), svg.Options{})))
}

// A text of more than four lines is cut with an ellipsis, and whole where one points at it.
func TestLongTextEndsWithAnEllipsis(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("and one more word ", 30))
	o := svg.Options{Labels: map[string]string{"work": long, "out": long}, Flows: map[[2]string]string{{"in", "work"}: long}}
	picture := draw(t, line(), o)
	cut := 0
	for _, line := range text(t, picture, "text") {
		if strings.HasSuffix(line, "…") {
			cut++
		}
	}
	require.Equal(t, 3, cut)
	require.Equal(t, 3, strings.Count(strings.Join(text(t, picture, "title"), "\n"), long))
}

// Tokens are dots up to four.
func TestTokens(t *testing.T) {
	n := line()
	for tokens, dots := range []int{0, 1, 2, 3, 4, 0} {
		picture := draw(t, n, svg.Options{Marking: net.Marking{0, int32(tokens)}})
		require.Equal(t, dots, strings.Count(picture, `<circle class="token"`), tokens)
	}
	require.Contains(t, text(t, draw(t, n, svg.Options{Marking: net.Marking{12345}}), "text"), "12345")
}

// Whatever the names and labels are, the picture is well-formed, and every label is in it as a whole, if it is long where
// one points at it.
func TestAnyTextIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.String().Draw(t, "word")
		d := &net.Definition{
			Name: word, Conditions: []net.Condition{{Name: "i" + word, Role: net.Start}, {Name: "o" + word, Role: net.End}},
			Tasks: []net.Task{{Name: "t" + word, Kind: net.Composite, Of: []string{word}, Cancels: []string{"i" + word}}},
			Flows: []net.Flow{{From: "i" + word, To: "t" + word}, {From: "t" + word, To: "o" + word}},
		}
		n := net.MustCompile(d)
		label := rapid.StringMatching(`[<>&"'a-z ]+[.]`).Draw(t, "label")
		picture := draw(t, n, svg.Options{Title: word, Labels: map[string]string{"t" + word: label},
			Flows: map[[2]string]string{{"i" + word, "t" + word}: word}})
		all := strings.ReplaceAll(strings.Join(append(text(t, picture, "text"), text(t, picture, "title")...), ""), " ", "")
		require.Contains(t, all, strings.ReplaceAll(label, " ", ""))
	})
}

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestErrorsOfTheWriter(t *testing.T) {
	size := len(draw(t, review(), svg.Options{}))
	for room := 0; room < size; room += 997 {
		require.ErrorIs(t, svg.Draw(&full{room}, review(), svg.Options{}), io.ErrShortWrite)
	}
	require.NoError(t, svg.Draw(&full{size}, review(), svg.Options{}))
}

func BenchmarkDraw(b *testing.B) {
	n := review()
	for b.Loop() {
		if err := svg.Draw(io.Discard, n, svg.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
