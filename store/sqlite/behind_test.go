package sqlite

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
)

// A disk that stays full is logged when that begins, once a minute, and when it is over.
func TestTablesThatStayBehindAreLoggedOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1_900_000_000, 0)
	opened, err := File(filepath.Join(t.TempDir(), "t.db"), Window(1, time.Hour)).
		Open(t.Context(), store.Options{Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	s := opened.(*Store)
	lines := func() int { return strings.Count(log.String(), "\n") }

	require.NoError(t, s.w.exec("PRAGMA query_only=1"))
	s.window.commands = 1 // as if there were something to write
	for range 30 {
		s.onAge()
	}
	require.Contains(t, log.String(), "the tables could not be brought up to date")
	require.Equal(t, 1, lines())
	for range 2 {
		now = now.Add(behindPace)
		s.onAge()
		s.onAge()
	}
	require.Equal(t, 3, lines())

	require.NoError(t, s.w.exec("PRAGMA query_only=0"))
	s.onAge()
	s.onAge()
	require.Contains(t, log.String(), "the tables are up to date again")
	require.Equal(t, 4, lines())
	require.NoError(t, s.Close())
}

func TestTablesThatStayBehindAreTriedAgainEverySlower(t *testing.T) {
	var b behind
	var waits []time.Duration
	for range 8 {
		waits = append(waits, b.again(slog.New(slog.DiscardHandler), time.Time{}, "t.db", errClosed, 100*time.Millisecond))
	}
	require.Equal(t, []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000}, inMillis(waits))
	b.times = 1 << 40
	require.Equal(t, behindWait, b.again(slog.New(slog.DiscardHandler), time.Time{}, "t.db", errClosed, 100*time.Millisecond))
	require.Equal(t, time.Hour, b.again(slog.New(slog.DiscardHandler), time.Time{}, "t.db", errClosed, time.Hour))
}

func inMillis(all []time.Duration) []time.Duration {
	for i := range all {
		all[i] /= time.Millisecond
	}
	return all
}
