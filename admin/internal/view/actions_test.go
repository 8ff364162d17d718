package view

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMoveIsForcedByItsForm(t *testing.T) {
	t.Parallel()
	a := actions["move"]
	form := url.Values{"case": {"0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071"}, "from": {"a"}, "to": {"b"}, "force": {"force"}}
	c, err := a.command(form, "eve")
	require.NoError(t, err)
	require.True(t, c.Force)
	form.Set("force", "")
	c, err = a.command(form, "eve")
	require.NoError(t, err)
	require.False(t, c.Force)
}
