package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// dies adds the row of an engine that another one has declared dead, and has not removed yet, or of one without heartbeats.
func dies(t *testing.T, dsn string, id int, state string) {
	t.Helper()
	execOn(t, dsn, fmt.Sprintf("INSERT INTO tasq.processes (id, name, state, reads, token, joined) OVERRIDING SYSTEM VALUE VALUES (%d, 'gone/%d', '%s', 1, %[1]d, now() - interval '1 h')", id, id, state),
		fmt.Sprintf("INSERT INTO tasq.pulses (process, beat, pace, busy) VALUES (%d, now() - interval '5 min', '1s', false)", id))
}

// deadOf lists the dead engines that a store knows.
func deadOf(t *testing.T, s store.Store) (all []store.DeadMember) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(r store.Reader) (err error) {
		all, err = r.(store.Members).Dead(t.Context())
		return err
	}))
	return all
}

// An engine that was declared dead is listed for a day with what it held, whether another engine notices it, or one that is opened. One
// that leaves is not.
func TestDeadEnginesAreListed(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var root workitem.CaseID
	w.Update(func(b *storetest.Batch) { root = b.Start(`1`) })
	grow(t, dsn, root, 5, "ANALYZE")
	execOn(t, dsn, "UPDATE tasq.jobs SET state = CASE WHEN id = (SELECT min(id::text)::uuid FROM tasq.jobs) THEN 'running' ELSE 'pending' END, holder = 1000")
	held := number(t, dsn, "SELECT count(*) FROM tasq.jobs")
	require.Empty(t, deadOf(t, w.Store))

	dies(t, dsn, 1000, "dead")
	dies(t, dsn, 1001, "dead")
	news, err := w.Store.(store.Fleet).Tick(t.Context(), store.EngineState{})
	require.NoError(t, err)
	require.Equal(t, 2, news.Died)
	host, err := os.Hostname()
	require.NoError(t, err)
	all := deadOf(t, w.Store)
	require.Len(t, all, 2)
	d := all[1]
	require.Equal(t, []any{int64(1000), "gone/1000", fmt.Sprintf("%s/%d", host, os.Getpid()), held, int64(1)}, []any{d.ID, d.Name, d.By, d.Held, d.Running})
	require.Greater(t, d.Silent, 4*time.Minute)
	require.InDelta(t, float64(time.Hour), float64(d.Died.Sub(d.Joined)), float64(30*time.Minute))
	require.Zero(t, all[0].Held)
	require.EqualValues(t, 1, number(t, dsn, "SELECT count(*) FROM tasq.processes"), "their rows are gone")

	dies(t, dsn, 1002, "live")
	other, err := sharedOpener{postgres.Open(dsn)}.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.Len(t, deadOf(t, w.Store), 3)

	// After a day they are no longer listed, and the next death removes their records.
	execOn(t, dsn, "UPDATE tasq.records SET value = (value::jsonb || jsonb_build_object('died', (value::jsonb ->> 'died')::bigint - 86400000000))::text WHERE collection = 'tasq-engines'")
	require.Empty(t, deadOf(t, w.Store))
	dies(t, dsn, 1003, "dead")
	_, err = w.Store.(store.Fleet).Tick(t.Context(), store.EngineState{})
	require.NoError(t, err)
	require.Len(t, deadOf(t, w.Store), 1)
	require.EqualValues(t, 1, number(t, dsn, "SELECT count(*) FROM tasq.records WHERE collection = 'tasq-engines'"))
}

// The list has the latest deaths of the day, and the records are bounded: a process that crashes whenever it is started leaves thousands.
func TestDeadEnginesAreBounded(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	s, err := sharedOpener{postgres.Open(dsn)}.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	execOn(t, dsn, "INSERT INTO tasq.processes (id, name, state, reads, token, joined) OVERRIDING SYSTEM VALUE SELECT n, 'gone', 'dead', 1, n, now() FROM generate_series(1001, 2100) n")
	other, err := sharedOpener{postgres.Open(dsn)}.Open(context.Background(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	all := deadOf(t, s)
	require.Len(t, all, store.MaxDead)
	require.EqualValues(t, 2100, all[0].ID)
	require.EqualValues(t, 1000, number(t, dsn, "SELECT count(*) FROM tasq.records WHERE collection = 'tasq-engines'"))
}
