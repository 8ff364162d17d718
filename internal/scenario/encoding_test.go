package scenario_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
)

const mark = "\ufeff"

// Some editors begin a file with a byte order mark. It is no part of the first word, and stays when outputs are
// recorded.
func TestAByteOrderMarkIsLeftOut(t *testing.T) {
	f, err := scenario.Parse("x.txt", []byte(mark+small))
	require.NoError(t, err)
	require.Equal(t, mark+small, string(f.Rewrite(nil)))
	plain := parseFile(t, small)
	require.Len(t, f.Commands, len(plain.Commands))
	f, err = scenario.Parse("x.txt", []byte(mark+"show case\n----\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"show", "case"}, f.Commands[0].Words)
	require.Equal(t, mark+"show case\n----\nstarted\n", string(f.Rewrite([][]string{{"started"}})))

	with, err := scenario.ParseNotation(net.Pos{}, mark+"workflow w\nstart s")
	require.NoError(t, err)
	without, err := scenario.ParseNotation(net.Pos{}, "workflow w\nstart s")
	require.NoError(t, err)
	require.Equal(t, without, with)
}

func TestUTF16IsNamed(t *testing.T) {
	for _, text := range []string{"\xff\xfes\x00h\x00", "\xfe\xff\x00s\x00h"} {
		_, err := scenario.Parse("x.txt", []byte(text))
		require.EqualError(t, err, "x.txt:1: the text is in UTF-16; save it in UTF-8")
		_, err = scenario.ParseNotation(net.Pos{File: "x.net"}, text)
		require.EqualError(t, err, "x.net:1: the text is in UTF-16; save it in UTF-8")
	}
	_, err := scenario.Parse("x.txt", []byte("show case\n----\n\x00"))
	require.EqualError(t, err, "x.txt:3: this is no text: there is a byte of zero in it")
}
