package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
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
	t.Parallel()
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
		if owned {
			require.NoError(t, schedules.Resume(t.Context(), e, "morning"))
			code, out, errs = tasq(t, db, "schedules", "morning")
			require.Zero(t, code, errs)
			require.Regexp(t, `(?m): pause by ann: the server moves$`, out)
			require.Regexp(t, `(?m): resume$`, out, "it has no actor and no reason")
		}
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
		require.LessOrEqual(t, len(row.Last), 1, "it was added a moment ago")
		require.Equal(t, "every 5m", row.Spec)
		code, out, errs = tasq(t, db, "why", row.Case.String())
		require.Zero(t, code, errs)
		require.Contains(t, out, "schedule poll: every 5m in UTC, starts digest, active")
		code, out, errs = tasq(t, db, "schedule", "remove", "poll")
		require.Zero(t, code, errs)
		require.Contains(t, out, "removed")
		code, _, errs = tasq(t, db, "schedule", "pause", "poll")
		require.Equal(t, ExitNotFound, code, errs)
		code, _, errs = tasq(t, db, "schedule", "add", "later", "digest", "--every", "1h", "--start", "2100-01-01T00:00:00Z", "--end", "2100-01-01T02:30:00Z",
			"--catch-up", "all", "--catch-up-most", "3", "--grace", "2m", "--data", `"x"`, "--by", "ann")
		require.Zero(t, code, errs)
		later, err := schedules.Find(t.Context(), e, "later")
		if owned {
			require.NoError(t, err)
			require.Equal(t, 3, later.Schedule.CatchUpMost)
			require.Equal(t, 2*time.Minute, later.Schedule.Grace)
		}
		code, out, errs = tasq(t, db, "schedules", "later", "-o", "json")
		require.Zero(t, code, errs)
		row = schedules.Description{}
		require.NoError(t, json.Unmarshal([]byte(out), &row))
		require.Len(t, row.Next, 3, "two whole hours after the start")
		code, _, errs = tasq(t, db, "schedule", "remove", "later")
		require.Zero(t, code, errs)
		code, _, errs = tasq(t, db, "schedule", "add", "x", "digest", "--every", "1h", "--start", "soon")
		require.Equal(t, ExitUsage, code, errs)
		require.Contains(t, errs, `--start "soon": write a time such as`)
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

// A command that is sent again with its key does nothing, whichever process executes it; another command with the key is refused.
func TestACommandOnAScheduleHasAKey(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	e := scheduleProgram(t, db, engine.Config{})
	for _, owned := range []bool{true, false} {
		key := "run of the program"
		if !owned {
			require.NoError(t, e.Close())
			key = "run of tasq"
		}
		for range 3 {
			code, _, errs := tasq(t, db, "schedule", "run", "morning", "--key", key, "--by", "ann")
			require.Zero(t, code, errs)
		}
		code, _, errs := tasq(t, db, "schedule", "pause", "morning", "--key", key, "--by", "ann")
		require.Equal(t, ExitRefused, code, errs)
		require.Contains(t, errs, "key")
		code, out, errs := tasq(t, db, "schedules", "morning", "-o", "json")
		require.Zero(t, code, errs)
		require.Equal(t, 1, strings.Count(out, key), out)
		require.NotContains(t, out, `"pause"`)
	}
}

// An add that is sent again with its key changes nothing, and takes back no update that came in between.
func TestRepeatedAddDoesNotRevertUpdate(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	scheduleProgram(t, db, engine.Config{})
	add := func(every string, more ...string) (int, string, string) {
		return tasq(t, db, append([]string{"schedule", "add", "poll", "digest", "--data", `"x"`, "--every", every, "--by", "ann"}, more...)...)
	}
	for i, c := range []struct {
		every, key, shown string
	}{{"5m", "k", "5m"}, {"10m", "", "10m"}, {"5m", "k", "10m"}} {
		more := []string{}
		if c.key != "" {
			more = append(more, "--key", c.key)
		}
		code, _, errs := add(c.every, more...)
		require.Zero(t, code, "%d: %s", i, errs)
		code, out, errs := tasq(t, db, "schedules")
		require.Zero(t, code, errs)
		require.Regexp(t, `(?m)^poll +every `+c.shown, out, "%d", i)
	}
	code, _, errs := add("20m", "--key", "k")
	require.Equal(t, ExitRefused, code, errs)
}

// A run that is asked for while no program is there begins when it comes, and so does a tick that is due then.
func TestARunWaitsForTheProgram(t *testing.T) {
	t.Parallel()
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

// The ticks of a period are begun once, in whatever way they are asked for, by the program or for it.
func TestAPeriodIsBackfilledByCommand(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	e := scheduleProgram(t, db, engine.Config{})
	fill := func(from, to string) (int, string) {
		code, _, errs := tasq(t, db, "schedule", "backfill", "morning", "--from", from, "--to", to, "--by", "ann", "--reason", "the digest was empty")
		return code, errs
	}
	code, errs := fill("2024-01-30T00:00:00+01:00", "2024-02-02T00:00:00+01:00")
	require.Zero(t, code, errs)
	code, errs = fill("2024-01-31T00:00:00+01:00", "2024-02-03T00:00:00+01:00")
	require.Zero(t, code, errs, "two of them are there")
	digests := func() (ticks []string) {
		require.NoError(t, e.Drain(t.Context()))
		for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: "digest"}) {
			require.NoError(t, err)
			var o workflow.Options
			require.NoError(t, json.Unmarshal(c.Options, &o))
			ticks = append(ticks, o.Tick.At.UTC().Format(time.RFC3339))
		}
		return ticks
	}
	want := []string{"2024-01-30T07:00:00Z", "2024-01-31T07:00:00Z", "2024-02-01T07:00:00Z", "2024-02-02T07:00:00Z"}
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Subset(c, digests(), want) }, time.Minute, time.Millisecond)
	require.NoError(t, e.Close())

	code, errs = fill("2024-03-01T00:00:00+01:00", "2024-03-02T00:00:00+01:00")
	require.Zero(t, code, errs, "no program is there")
	e = scheduleProgram(t, db, engine.Config{})
	want = append(want, "2024-03-01T07:00:00Z")
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Subset(c, digests(), want) }, time.Minute, time.Millisecond)
	counted := make(map[string]int)
	for _, tick := range digests() {
		counted[tick]++
		require.Equal(t, 1, counted[tick], tick)
	}
	code, errs = fill("yesterday", "2024-03-02T00:00:00+01:00")
	require.Equal(t, ExitUsage, code, errs)
	require.Contains(t, errs, `--from "yesterday": write a time such as`)
	require.NoError(t, e.Close())
}

// A queue that no workflow names can be paused, and the command says that none does.
func TestAQueueThatNoWorkflowNames(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	f := builder.MustFunc("send", func(_ context.Context, s string) (string, error) { return s, nil }, builder.OnQueue("mails"))
	e, err := engine.Open(t.Context(), sqlite.File(db), f)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for queue, hint := range map[string]string{"mails": "", "": "", "mail": `no workflow of the database names a queue "mail"; did you mean "mails"?`} {
		for _, do := range []string{"pause", "resume"} {
			code, _, errs := tasq(t, db, "queue", do, queue)
			require.Zero(t, code, errs)
			if hint == "" {
				require.Empty(t, errs)
				continue
			}
			require.Contains(t, errs, hint)
		}
	}
}

func TestDoctorNamesOverdueSchedules(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	clock := virtual.NewClock()
	clock.Set(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	e := scheduleProgram(t, db, engine.Config{Clock: clock})
	require.NoError(t, e.Close())
	code, out, errs := tasq(t, db, "doctor")
	require.Zero(t, code, errs)
	require.Contains(t, out, "of schedule morning, which starts digest)")
	code, out, errs = tasq(t, db, "schedules", "-o", "json")
	require.Zero(t, code, errs)
	require.Contains(t, out, `"overdue_since":"2020-01-01T`)
}
