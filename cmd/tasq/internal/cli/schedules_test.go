package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// tasq runs the command on a database.
func tasq(t *testing.T, db string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(t.Context(), append([]string{"--db", db}, args...), Streams{In: bytes.NewReader(nil), Out: &o, Err: &e}, Registry{})
	return code, o.String(), e.String()
}

func scheduleProgram(t *testing.T, db string, cfg engine.Config) *engine.Engine {
	t.Helper()
	f := builder.MustFunc("digest", func(_ context.Context, s string) (string, error) { return s, nil })
	s := schedules.New(engine.Code, builder.Schedule(schedule.Schedule{Name: "morning", Cron: "0 8 * * *", Zone: "Europe/Berlin"}, f, "all"))
	e, err := cfg.Open(t.Context(), sqlite.File(db), f, s)
	require.NoError(t, err)
	_, err = s.Serve(t.Context(), e)
	require.NoError(t, err)
	return e
}

func TestSchedulesByCommand(t *testing.T) {
	db := filepath.Join(t.TempDir(), "s.db")
	e := scheduleProgram(t, db, engine.Config{})
	for _, owned := range []bool{true, false} {
		if !owned {
			require.NoError(t, e.Close())
		}
		code, out, errs := tasq(t, db, "schedules")
		require.Zero(t, code, errs)
		require.Contains(t, out, "morning  0 8 * * *  Europe/Berlin  active")
		code, out, errs = tasq(t, db, "schedule", "pause", "morning", "--by", "ann", "--reason", "the server moves")
		require.Zero(t, code, errs)
		require.Contains(t, out, "paused")
		code, out, errs = tasq(t, db, "schedule", "resume", "morning")
		require.Zero(t, code, errs)
		require.Contains(t, out, "active")
		code, _, errs = tasq(t, db, "schedule", "add", "poll", "digest", "--every", "5m", "--data", `"x"`, "--by", "ann")
		require.Zero(t, code, errs)
		code, out, errs = tasq(t, db, "schedules", "poll", "-o", "json")
		require.Zero(t, code, errs)
		var row schedules.Description
		require.NoError(t, json.Unmarshal([]byte(out), &row))
		require.Len(t, row.Next, 5)
		require.Len(t, row.Last, 5)
		require.Equal(t, "every 5m", row.Spec)
		code, out, errs = tasq(t, db, "why", row.Case.String())
		require.Zero(t, code, errs)
		require.Contains(t, out, "schedule poll: every 5m in UTC, starts digest, active")
		code, out, errs = tasq(t, db, "schedule", "remove", "poll")
		require.Zero(t, code, errs)
		require.Contains(t, out, "removed")
		code, _, errs = tasq(t, db, "schedule", "pause", "poll")
		require.Equal(t, ExitNotFound, code, errs)
		code, _, errs = tasq(t, db, "schedule", "add", "x", "digest", "--cron", "61 * * * *")
		require.Equal(t, ExitUsage, code, errs)
		if owned {
			code, out, errs = tasq(t, db, "schedule", "run", "morning")
			require.Zero(t, code, errs)
			require.Contains(t, out, "morning")
			require.NoError(t, e.Drain(t.Context()))
			i, err := schedules.Find(t.Context(), e, "morning")
			require.NoError(t, err)
			code, out, errs = tasq(t, db, "why", i.Latest.Case.String())
			require.Zero(t, code, errs)
			require.Contains(t, out, "started by schedule morning for its tick")
		}
	}
	code, out, errs := tasq(t, db, "doctor")
	require.Zero(t, code, errs)
	require.Contains(t, out, "0 problems, 0 jobs overdue")
}

// A run that is asked for while no program is there begins when it comes, and so does a tick that is due then.
func TestARunWaitsForTheProgram(t *testing.T) {
	db := filepath.Join(t.TempDir(), "s.db")
	e := scheduleProgram(t, db, engine.Config{})
	require.NoError(t, e.Close())
	code, _, errs := tasq(t, db, "schedule", "run", "morning")
	require.Zero(t, code, errs)
	clock := virtual.NewClock() // it is years later
	e = scheduleProgram(t, db, engine.Config{Clock: clock})
	require.NoError(t, clock.Advance(t.Context(), e, time.Minute))
	i, err := schedules.Find(t.Context(), e, "morning")
	require.NoError(t, err)
	require.False(t, i.Latest.Case.IsZero())
	run, err := e.RunInfo(t.Context(), i.Latest.Case)
	require.NoError(t, err)
	require.True(t, run.State.Final())
	require.NoError(t, e.Close())
}

func TestDoctorNamesOverdueSchedules(t *testing.T) {
	db := filepath.Join(t.TempDir(), "s.db")
	clock := virtual.NewClock()
	clock.Set(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	e := scheduleProgram(t, db, engine.Config{Clock: clock})
	require.NoError(t, e.Close())
	code, out, errs := tasq(t, db, "doctor")
	require.Zero(t, code, errs)
	require.Contains(t, out, "of schedule morning")
	code, out, errs = tasq(t, db, "schedules", "-o", "json")
	require.Zero(t, code, errs)
	require.Contains(t, out, `"overdue_since":"2020-01-01T`)
}
