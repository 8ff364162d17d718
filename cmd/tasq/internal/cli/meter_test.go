package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/integrity"
)

// The check says what it does also while that has no number, and nothing without a terminal.
func TestTheMeterSaysWhatIsBeingDone(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	m := &meter{w: &b, last: -1}
	m.doing("the database checks its own pages")
	m.checked(integrity.Progress{Entries: 1, Of: 2})
	m.end()
	require.Equal(t, "\r\x1b[Kthe database checks its own pages ...\r\x1b[Kchecked 1 of 2 journal entries (50 %)\r\x1b[K", b.String())
	none := &meter{}
	none.doing("nothing")
	none.end()
	require.False(t, none.shown)
}
