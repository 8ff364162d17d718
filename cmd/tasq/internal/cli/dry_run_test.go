package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
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
		{[]string{"schedule", "run", "morning"}, "schedule morning: a run of digest starts now\n"},
		{[]string{"schedule", "backfill", "morning", "--from", "2026-11-01T00:00:00Z", "--to", "2026-11-03T00:00:00Z"}, "schedule morning: 2 runs of digest, "},
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

// Beside the program that owns the database, that program tries the command, with its code.
func TestADryRunBesideTheOwner(t *testing.T) {
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		f := builder.MustFunc("digest", func(_ context.Context, s string) (string, error) { return s, nil }, builder.OnQueue("mail"))
		open := func(workers int) *engine.Engine {
			e, err := engine.Config{Workers: workers, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), db, f)
			require.NoError(t, err)
			return e
		}
		e := open(-1)
		id, err := f.Start(t.Context(), e, "x")
		require.NoError(t, err)
		newest := func() int64 {
			n, err := store.Newest(t.Context(), e, store.JournalFilter{})
			require.NoError(t, err)
			return n
		}
		before := newest()
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"case", "start", "digest", "--data", `"y"`}, "of digest:"},
			{[]string{"case", "cancel", id.String()}, "would change case " + id.String() + " of digest:"},
			{[]string{"case", "cancel", id.String()}, "\n    job run of run.1.1 canceled\n"}, // the words of the history
			{[]string{"queue", "pause", "mail"}, `would change the setting of queue "mail": open -> paused by ann`},
			{[]string{"queue", "resume", "mail"}, "the command would change nothing"},
		} {
			code, out, errs := tasq(t, at, append(c.args, "--by", "ann", "--timeout", "1m", "--dry-run")...)
			require.Zero(t, code, "%v: %s", c.args, errs)
			require.Contains(t, out, c.want, "%v", c.args)
		}
		code, _, errs := tasq(t, at, "case", "resume", id.String(), "--timeout", "1m", "--dry-run")
		require.Equal(t, ExitRefused, code, "the error of the command: %s", errs)
		require.Equal(t, before, newest())
		require.NoError(t, e.Close())
		code, _, errs = tasq(t, at, "case", "cancel", id.String(), "--dry-run")
		require.Equal(t, ExitRefused, code)
		require.Contains(t, errs, "workflow digest is code that tasq does not have, and no program that has it owns")
	})
}
