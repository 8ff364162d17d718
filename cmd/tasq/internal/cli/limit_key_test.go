package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

func TestTheLimitOfAKeyIsSetByCommand(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil },
		builder.Limits(builder.TakesBy(limit.Rate("customers", 5, time.Minute, limit.SlidingWindow), 1, func(s string) string { return s })))
	e, err := engine.Open(t.Context(), sqlite.File(db), f)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	must := func(args ...string) string {
		t.Helper()
		code, out, errs := tasq(t, db, args...)
		require.Zero(t, code, errs)
		return out
	}
	require.Contains(t, must("limit", "set", "customers", "0", "--key", "ada", "--by", "ann"), "limit customers of ada is set to 0")
	require.Contains(t, must("limit", "set", "customers", "20", "--key", "eve"), "limit customers of eve is set to 20")
	require.Regexp(t, `(?m)^customers +in 1m, sliding window +5 +5 .*\ncustomers +key ada +0 +5 +paused.*\ncustomers +key eve +20 +5.*$`, must("limits"))
	var l workflow.LimitInfo
	require.NoError(t, json.Unmarshal([]byte(must("limits", "-o", "json")), &l))
	require.Equal(t, "ann", l.Set[0].By)

	run, err := f.Run(t.Context(), e, "ada")
	require.NoError(t, err)
	require.NoError(t, e.Drain(t.Context()))
	must("limit", "set", "customers", "5", "--key", "ada")
	_, err = run.Result(t.Context(), e)
	require.NoError(t, err)
	require.NotContains(t, must("limits"), "ada")
	code, _, errs := tasq(t, db, "limit", "set", "customers", "5", "--key", "")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "--key is empty: give a value, or leave it out")
}

// A limit that no function of the database takes of any more is listed as such, and forgotten by command.
func TestALimitWithoutAFunctionIsForgottenByCommand(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(builder.Takes(limit.Resource("db", 5), 1)))
	e, err := engine.Open(t.Context(), sqlite.File(db), f)
	require.NoError(t, err)
	must := func(args ...string) string {
		t.Helper()
		code, out, errs := tasq(t, db, args...)
		require.Zero(t, code, errs)
		return out
	}
	must("limit", "set", "db", "3")
	require.Regexp(t, `(?m)^db +slots +3 +5 +0 +0 +now.*$`, must("limits"))
	require.NoError(t, e.Close())
	require.Regexp(t, `(?m)^db +slots +3 +5 +0 +0 +no function here.*$`, must("limits"))
	require.Contains(t, must("limit", "forget", "db"), "the settings of limit db are removed")
	require.Empty(t, must("limits"))
	code, _, errs := tasq(t, db, "limit", "forget", "db")
	require.Equal(t, ExitNotFound, code)
	require.Contains(t, errs, `limit "db": no workflow of this database has limits`)
}

// A key of a pool is paused and given another number by command; who waits for any of the keys says so.
func TestThePoolOfALimitByCommand(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "s.db")
	ask := builder.MustFunc("ask", func(_ context.Context, s string) (string, error) { return s, nil },
		builder.Limits(builder.Takes(limit.Calls(1, time.Hour), 1).AnyOf("key-1", "key-2", "key-3")))
	e, err := engine.Open(t.Context(), sqlite.File(db), ask)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	must := func(args ...string) string {
		t.Helper()
		code, out, errs := tasq(t, db, args...)
		require.Zero(t, code, errs)
		return out
	}
	must("limit", "set", "calls", "0", "--key", "key-2")
	must("limit", "set", "calls", "2", "--key", "key-3")
	var runs []builder.Run[string]
	for _, s := range []string{"a", "b", "c", "d"} {
		run, err := ask.Run(t.Context(), e, s)
		require.NoError(t, err)
		runs = append(runs, run)
	}
	for _, run := range runs[:3] {
		_, err := run.Result(t.Context(), e)
		require.NoError(t, err)
	}
	require.Regexp(t, `(?m)^calls +in 1h, sliding window +1 +1 +3 +1 +in 59m.*\ncalls +key key-2 +0 +1 +paused.*\ncalls +key key-3 +2 +1.*$`, must("limits"))
	require.Regexp(t, `1 of rate calls, free in 59m\S+ \(of key-1, key-2 or key-3; key-[13] is the first\)`, must("why", runs[3].ID.String()))
	must("limit", "set", "calls", "1", "--key", "key-2")
	_, err = runs[3].Result(t.Context(), e)
	require.NoError(t, err)
}

// What code outside of jobs holds of a limit, and waits for, is listed beside what jobs do, and tasq why names it.
func TestLimitsListCodeOutsideOfJobs(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		slots := limit.Resource("db", 1).Shared()
		f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(builder.Takes(slots, 1)))
		e, err := engine.Open(t.Context(), db, f)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		lease, err := engine.Limits(e, step.Takes(slots, 1)).Acquire(t.Context())
		require.NoError(t, err)
		run, err := f.Run(t.Context(), e, "x")
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			result, err := e.Do(t.Context(), workflow.Limits())
			require.NoError(t, err)
			return result.Limits[0].Waiting == 1
		}, time.Minute, time.Millisecond)
		code, out, errs := tasq(t, at, "limits")
		require.Zero(t, code, errs)
		require.Regexp(t, `(?m)^db +slots +1 +1 +1 +1 .*\ndb +outside of jobs +1 +0 *$`, out)
		code, out, errs = tasq(t, at, "why", run.ID.String())
		require.Zero(t, code, errs)
		require.Contains(t, out, "waits for 1 of slots db, not enough are free, 1 held outside of jobs")
		lease.Release()
		_, err = run.Result(t.Context(), e)
		require.NoError(t, err)
	})
}

// Without the program it is not known which key a job has, so tasq why and the doctor name those of its queue that are paused.
func TestPausedKeysAreNamedWithoutTheProgram(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil }, builder.OnQueue("mail"),
			builder.FairBy(func(s string) string { return s }))
		e, err := engine.Open(t.Context(), db, f)
		require.NoError(t, err)
		_, err = e.Do(t.Context(), workflow.PauseKey("mail", "ada"))
		require.NoError(t, err)
		run, err := f.Run(t.Context(), e, "ada")
		require.NoError(t, err)
		require.NoError(t, e.Close())
		one := "waits for a worker of queue mail (key ada of the queue is paused; only the program that runs the job knows whether that is its key)"
		require.Contains(t, ran(t, at, "why", run.ID.String()), one)
		s, err := database.Of(at).Read(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
			jobs, err := r.Jobs(t.Context(), store.JobFilter{States: []state.JobState{state.JobPending}})
			require.NoError(t, err)
			said, err := waitsForLimits(t.Context(), r, jobs[0])
			require.Contains(t, said, one, "what the doctor says of a job that is overdue")
			return err
		}))
		require.NoError(t, s.Close())
		for key := range 6 {
			ran(t, at, "queue", "pause", "mail", "--key", "key-"+strconv.Itoa(key))
		}
		require.Contains(t, ran(t, at, "why", run.ID.String()), "(keys ada, key-0, key-1, key-2, key-3 and 2 others of the queue are paused;")
	})
}
