package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// Commands on queues, workflows and schedules, and a removal, say what they would do, and do nothing.
func TestDryRunsOfSettingsAndSchedules(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	e := scheduleProgram(t, db, engine.Config{})
	require.NoError(t, e.Close())
	read := func() (settings []store.Setting, newest int64) {
		s, err := sqlite.File(db).Open(t.Context(), store.Options{ReadOnly: true})
		require.NoError(t, err)
		require.NoError(t, s.View(t.Context(), func(r store.Reader) (err error) {
			settings, err = r.Settings(t.Context())
			return err
		}))
		newest, err = store.Newest(t.Context(), s, store.JournalFilter{})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		return settings, newest
	}
	settings, newest := read()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"queue", "pause", "mail", "--reason", "it moves"}, `would change the setting of queue "mail": open -> paused by ann (it moves)`},
		{[]string{"queue", "pause", "mail", "--key", "ada"}, `queue "mail": open -> open, key ada paused by ann`},
		{[]string{"queue", "resume", "mail"}, "the command would change nothing"},
		{[]string{"queue", "workers", "mail", "5"}, `queue "mail": open -> open, 5 workers by ann`},
		{[]string{"workflow", "suspend", "digest"}, "workflow digest: not suspended -> suspended by ann"},
		{[]string{"workflow", "resume", "digest"}, "the command would change nothing"},
		{[]string{"schedule", "pause", "morning"}, "of " + schedules.Name + ":"},
		{[]string{"schedule", "run", "morning"}, "of " + schedules.Name + ":"},
		{[]string{"schedule", "remove", "morning"}, "of " + schedules.Name + ":"},
		{[]string{"schedule", "add", "poll", "digest", "--every", "5m", "--data", `"x"`}, "of " + schedules.Name + ":"},
	} {
		code, out, errs := tasq(t, db, append(c.args, "--by", "ann", "--dry-run")...)
		require.Zero(t, code, "%v: %s", c.args, errs)
		require.Contains(t, out, c.want, "%v", c.args)
		require.NotContains(t, out, "is paused\n", c.args)
		after, at := read()
		require.Equal(t, settings, after, c.args)
		require.Equal(t, newest, at, c.args)
	}
}
