package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// A live engine has lost the session with its lock, and cannot connect for a while. Nothing opens the database alone meanwhile, as a command
// of tasq does: the engine would be declared dead, and lost if it came back then.
func TestALiveEngineWithoutItsLockIsNotReplaced(t *testing.T) {
	t.Parallel()
	direct := prepared.Database(t)
	p, dsn := pgproxy.New(t, direct)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	const locks = "FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.datname = current_database() AND l.locktype = 'advisory' AND l.mode = 'ShareLock'"
	require.Equal(t, int64(1), number(t, direct, "SELECT count(*) "+locks))
	p.Refuse()
	execOn(t, direct, "SELECT pg_terminate_backend(a.pid, 10000) "+locks)
	_, err := postgres.Open(direct).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorContains(t, err, "another engine (")
	require.NoError(t, step(w, id, false))
	p.Open()
	require.Eventually(t, func() bool { return number(t, direct, "SELECT count(*) "+locks) == 1 }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, step(w, id, false))
	w.Check()
}

// A command of tasq has the lock of the engines while it looks whether one is alive. An engine that has just lost the session with its lock waits until
// it gets it again, and does not stop for good.
func TestAnEngineWaitsForWhatOnlyLooks(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	const locks = "FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.datname = current_database() AND l.locktype = 'advisory' AND l.mode = 'ShareLock'"
	looks := session(t, dsn, "looks", "")
	got := make(chan error, 1)
	go func() {
		_, err := looks.Exec(context.Background(), "SELECT pg_advisory_lock(hashtextextended('tasq engine tasq', 0))")
		got <- err
	}()
	require.Eventually(t, func() bool {
		return number(t, dsn, fmt.Sprint("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ", looks.PgConn().PID())) == 1
	},
		10*time.Second, 10*time.Millisecond)
	execOn(t, dsn, "SELECT pg_terminate_backend(a.pid, 10000) "+locks)
	require.NoError(t, <-got)
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		require.NoError(t, step(w, id, false))
	}
	require.NoError(t, looks.Close(t.Context()))
	require.Eventually(t, func() bool { return number(t, dsn, "SELECT count(*) "+locks) == 1 }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, step(w, id, false))
	w.Check()
}

// All sessions of an engine end, as if the server was restarted, and a command of tasq opens the database alone before the engine is back. The engine
// commits nothing meanwhile, and continues when the command has ended.
func TestAnEngineContinuesAfterACommandThatHadTheDatabaseAlone(t *testing.T) {
	t.Parallel()
	direct := prepared.Database(t)
	p, dsn := pgproxy.New(t, direct)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	p.Refuse()
	p.Cut()
	s, err := postgres.Open(direct).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	p.Open()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		err := step(w, id, false)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.NotErrorIs(t, err, store.ErrLost)
	}
	require.Equal(t, int64(1), number(t, direct, "SELECT count(*) FROM tasq.processes"))
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool { return step(w, id, false) == nil }, 10*time.Second, 10*time.Millisecond)
	w.Check()
}
