package demo_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// stopAt cancels once a text is written.
type stopAt struct {
	bytes.Buffer
	text string
	stop func()
}

// Write implements io.Writer.
func (s *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

func incidentsOn(t *testing.T, path string) string {
	var out bytes.Buffer
	require.NoError(t, demo.RunIncident(t.Context(), &out, demo.IncidentOptions{Setting: demo.Setting{DB: path, Fast: true}}))
	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, integrity.Check(t.Context(), s))
	require.NoError(t, s.Close())
	return out.String()
}

// Forty purchases fail alike; people decide, and all of them complete. The history says who decided and why.
func TestIncidentsAreDecided(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "incident.db")
	out := incidentsOn(t, path)
	for _, text := range []string{
		"40 incidents alike: supplier-down", "38 incidents done, 0 refused\n", "\n  40 completed\n",
		"item skip buy.1.2, by ann\n    note: reason: bought in town\n", "from buy to price, by ben\n    note: reason: a new price\n",
		"item retry buy.1.2, by cleo\n    note: reason: the supplier is back\n", `completed by ann with {"id":"P-`,
	} {
		require.Contains(t, out, text)
	}
	require.Contains(t, incidentsOn(t, path), "\n  80 completed\n", "a second run starts fresh purchases")
}

// A demo that is stopped while all incidents are open continues with them.
func TestIncidentsOutliveTheDemo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "incident.db")
	ctx, stop := context.WithCancel(t.Context())
	out := stopAt{text: "40 incidents alike", stop: stop}
	err := demo.RunIncident(ctx, &out, demo.IncidentOptions{Setting: demo.Setting{DB: path, Fast: true}})
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, out.String(), "To go on: tasq demo incident")
	again := incidentsOn(t, path)
	require.Contains(t, again, "40 incidents alike")
	require.Contains(t, again, "\n  40 completed\n")
}
