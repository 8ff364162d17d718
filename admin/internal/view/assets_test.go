package view

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The style and the script of the pages stay small: they are sent whole, to every browser.
func TestAssetsAreSmall(t *testing.T) {
	for _, name := range []string{"style.css", "script.js"} {
		data, err := assetFiles.ReadFile("assets/" + name)
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), 12<<10, name)
	}
}
