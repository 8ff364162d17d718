package printable_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/printable"
)

func TestWidth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "abc": 3, "ä": 1, "a\u0308": 1, "東京": 4, "한국": 4, "ｱ": 1, "Ａ": 2, "…": 1, "😀": 2, "👍🏽": 2,
		"❤\ufe0f": 2, "👩\u200d💻": 2, "🇩🇪": 2, "✓": 1, "a\u200db": 2,
	} {
		require.Equal(t, want, printable.Width(text), "%q", text)
	}
}

// A cut text is never wider than asked for, and no mark is separated from its character.
func TestCutToColumns(t *testing.T) {
	t.Parallel()
	require.Equal(t, "東京", printable.Cut("東京", 4, true))
	require.Equal(t, "東…", printable.Cut("東京都", 4, true))
	require.Equal(t, "東…都", printable.Cut("東京大都", 6, false))
	require.Equal(t, "ab…", printable.Cut("abcd", 3, true))
	require.Equal(t, "ab…ef", printable.Cut("abcdef", 5, false))
	require.Equal(t, "a\u0308…", printable.Cut("a\u0308bc", 2, true))
	require.Equal(t, "x…z\u0308", printable.Cut("xyyz\u0308", 3, false))
	for most := 1; most < 14; most++ {
		for _, atEnd := range []bool{true, false} {
			require.LessOrEqual(t, printable.Width(printable.Cut("👩\u200d💻東a\u0308京❤\ufe0fxyz😀", most, atEnd)), most)
		}
	}
}
