package postgres_test

import (
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
