package svg

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"short":      {"pack", []string{"pack"}},
		"spaces":     {"  check \t the\norder ", []string{"check the", "order"}},
		"underscore": {"check_the_order", []string{"check_the_", "order"}},
		"camel":      {"checkTheOrder", []string{"checkThe", "Order"}},
		"path":       {"/data/numberOfRuns", []string{"/data/", "numberOf", "Runs"}},
		"no place":   {"xxxxxxxxxxxxxxxxxxxx", []string{"xxxxxxxxxxx", "xxxxxxxxx"}},
		"Chinese":    {"请检查这个订单的内容", []string{"请检查这个", "订单的内容"}},
		"empty":      {" ", nil},
		"control":    {"a\x00b\xffc", []string{"a\uFFFDb\uFFFDc"}},
		"mark alone": {"- - -", []string{"- - -"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, wrap(test.text, 11, 64).lines) })
	}
}

// The narrowest width that does with three lines is taken, and a text that none of them holds is cut.
func TestWrapTakesTheNarrowestThatDoes(t *testing.T) {
	require.LessOrEqual(t, wrap("one two three", 11, 40, 400).width, 40)
	require.Len(t, wrap("one two three four five six", 11, 40, 400).lines, 1)
	long := wrap(strings.Repeat("wwww ", 40), 11, 40, 80)
	require.Equal(t, []string{"wwww wwww", "wwww wwww", "wwww wwww", "wwww wwww…"}, long.lines)
	require.Equal(t, strings.TrimSpace(strings.Repeat("wwww ", 40)), long.whole)
	require.Len(t, wrap("unbreakable", 11, 40, 80).lines, 1)
}

// Nothing is cut off but lines that are too many, and then the whole text is kept.
func TestWrapKeepsAllText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		width := rapid.IntRange(20, 200).Draw(t, "width")
		b := wrap(text, 11, width)
		require.NoError(t, checkShown(&b, text))
		for _, line := range b.lines {
			require.LessOrEqual(t, textWidth(line, 11), max(width, b.width))
			require.LessOrEqual(t, b.width, width)
			require.NotEmpty(t, strings.TrimSpace(line))
		}
	})
}
