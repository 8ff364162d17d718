package xmlread

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnnamed(t *testing.T) {
	var u Unnamed
	u.Element("p1", "")
	u.Add("start")
	require.Equal(t, map[string]bool{"start": true}, u.Names(), "the ids are the only names")
	u.Element("t1", "Do it")
	require.Equal(t, map[string]bool{"start": true, "p1": true}, u.Names())
}

func TestALongLabelEndsWithAnEllipsis(t *testing.T) {
	require.Equal(t, "a b", Label(" a\n\tb "))
	require.Equal(t, strings.Repeat("ä", 500), Label(strings.Repeat("ä", 500)))
	require.Equal(t, strings.Repeat("ä", 500)+"…", Label(strings.Repeat("ä", 501)))
}
