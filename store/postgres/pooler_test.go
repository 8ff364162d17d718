package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// pooler starts a pooler that gives a session to a transaction at a time, and returns what leads connection strings through it.
func pooler(t *testing.T) func(dsn string) string {
	server, err := pgtest.Server()
	if err != nil {
		pgtest.Database(t) // skips, or fails
	}
	return pgtest.Pooler(t, server)
}

// The rules of every store hold through a pooler: those of transactions and of the user's SQL always, all of them in the nightly form.
func TestStoreThroughAPooler(t *testing.T) {
	t.Parallel()
	through := pooler(t)
	only := []string{"all-or-nothing", "present", "keys", "savepoint", "user-sql", "user-guard", "user-view", "requests", "limits"}
	if testsize.Nightly() {
		only = nil
	}
	storetest.Run(t, func(t *testing.T) store.Opener {
		dsn := through(pgtest.Database(t))
		spread(t, dsn)
		return sharedOpener{postgres.Open(dsn, postgres.Poll(0))}
	}, only...)
}

// So do those of several stores on one database, of which one may be connected to the server.
func TestFleetThroughAPooler(t *testing.T) {
	t.Parallel()
	through := pooler(t)
	storetest.RunFleet(t, func(t *testing.T) store.Opener {
		dsn := pgtest.Database(t)
		spread(t, through(dsn))
		return fenced{postgres.Open(through(dsn) + "&tasq_poll=100ms"), dsn}
	})
}

// A pooler that was not mentioned is refused, and the error says what to do. The session that it has answered with, which the
// pooler then gives to others, is as it was.
func TestAPoolerIsMentioned(t *testing.T) {
	t.Parallel()
	through := pooler(t)
	dsn := pgtest.Database(t)
	_, err := postgres.Open(through(dsn)).Open(t.Context(), store.Options{Shared: true})
	require.ErrorContains(t, err, "postgres.Poll")
	require.ErrorContains(t, err, "tasq_poll=1s")
	_, err = postgres.Open(through(dsn)).Open(t.Context(), store.Options{ReadOnly: true})
	require.ErrorContains(t, err, "tasq_poll=1s")
	var only, path, timeout, scan string
	require.NoError(t, unnamed(t, through(dsn)).QueryRow(t.Context(), "SELECT current_setting('default_transaction_read_only'), current_setting('search_path'), "+
		"current_setting('lock_timeout'), current_setting('enable_seqscan')").Scan(&only, &path, &timeout, &scan))
	require.Equal(t, []string{"off", `"$user", public`, "0", "on"}, []string{only, path, timeout, scan})
}

// A database cannot be had alone through a pooler. What the error says depends on whether an engine has it open, to which
// a command can be left.
func TestADatabaseIsNotHadAloneThroughAPooler(t *testing.T) {
	t.Parallel()
	through := pooler(t)
	dsn := pgtest.Database(t)
	alone := func() error {
		s, err := postgres.Open(through(dsn), postgres.Poll(0)).Open(t.Context(), store.Options{})
		if err == nil {
			require.NoError(t, s.Close())
		}
		return err
	}
	require.ErrorIs(t, alone(), store.ErrUnavailable)
	require.ErrorContains(t, alone(), "connect to the server itself")
	for _, opener := range []store.Opener{postgres.Open(dsn), postgres.Open(through(dsn), postgres.Poll(0))} {
		s, err := opener.Open(t.Context(), store.Options{Shared: true})
		require.NoError(t, err)
		require.ErrorIs(t, alone(), store.ErrOwned)
		require.NoError(t, s.Close())
		require.ErrorIs(t, alone(), store.ErrUnavailable)
	}
}

// The sessions that a pooler shares are as they were: the engine leaves no setting, no statement and no lock in them.
func TestNothingStaysInTheSessionsOfAPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	through := pooler(t)
	spread(t, through(dsn))
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(through(dsn), postgres.Poll(0))}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) {
		id = b.Start(`1`)
		_, err := b.Tx.DB().ExecContext(t.Context(), "CREATE TABLE effects (at timestamptz DEFAULT now())")
		require.NoError(t, err)
		stmt, err := b.Tx.DB().PrepareContext(t.Context(), "INSERT INTO effects SELECT now() WHERE $1 = 1")
		require.NoError(t, err)
		_, err = stmt.ExecContext(t.Context(), 1) // and never closed
		require.NoError(t, err)
	})
	for range 20 {
		require.NoError(t, step(w, id, true))
		w.Check()
	}
	require.Equal(t, 21, effects(t, w))
	c := unnamed(t, through(dsn))
	pids := make(map[int]bool)
	for range 2 * sessions { // each time in the session that was used least recently
		var pid, prepared, locks int
		var path, timeout string
		require.NoError(t, c.QueryRow(t.Context(), "SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements), "+
			"(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), "+
			"current_setting('search_path'), current_setting('lock_timeout')").Scan(&pid, &prepared, &locks, &path, &timeout))
		require.Equal(t, []any{0, 0, `"$user", public`, "0"}, []any{prepared, locks, path, timeout})
		pids[pid] = true
	}
	require.GreaterOrEqual(t, len(pids), sessions)
}

// unnamed is a connection whose statements have no names.
func unnamed(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	c, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// sessions is how many spread has the pooler open.
const sessions = 5

// spread has a pooler open several sessions, so that each transaction that follows has another one.
func spread(t *testing.T, dsn string) {
	t.Helper()
	var all []pgx.Tx
	for range sessions {
		tx, err := unnamed(t, dsn).Begin(t.Context())
		require.NoError(t, err)
		all = append(all, tx)
	}
	for _, tx := range all {
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// A database that one engine has alone is refused to one behind a pooler, which would not see the other's lock; and the other way round.
func TestAloneAndThroughAPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	through := pooler(t)
	pooled := func(opts ...postgres.Option) error {
		s, err := postgres.Open(through(dsn), append(opts, postgres.Poll(0))...).Open(t.Context(), store.Options{Shared: true})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
		}
		return err
	}
	require.ErrorIs(t, pooled(postgres.Alone()), store.ErrUnavailable)
	alone, err := postgres.Open(dsn, postgres.Alone()).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, pooled(), store.ErrOwned)
	require.NoError(t, alone.Close())
	require.Eventually(t, func() bool { return pooled() == nil }, time.Minute, 10*time.Millisecond, "once the server has ended its session")
	_, err = postgres.Open(dsn, postgres.Alone()).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
}

// An engine behind a pooler that stops in a transaction is declared dead, and the server's process that it has is ended with its locks.
func TestAStoppedEngineBehindAPoolerKeepsNoLock(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	through := pooler(t)
	a := storetest.NewWorld(t, sharedOpener{postgres.Open(through(dsn), postgres.Poll(0))}, 1)
	b := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 2)
	var id workitem.CaseID
	a.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	b.Resume()
	err := a.TryUpdate(func(batch *storetest.Batch) error { // it does nothing more until it is declared dead
		if _, err := batch.Tx.(store.SharedTx).LockCase(t.Context(), id, true); err != nil {
			return err
		}
		execOn(t, dsn, "UPDATE tasq.pulses SET beat = clock_timestamp(), pace = '-2 s' WHERE process IN (SELECT id FROM tasq.processes WHERE pid IS NULL)")
		news, err := b.Store.(store.Fleet).Tick(t.Context(), store.EngineState{Clock: time.Now()})
		require.NoError(t, err)
		require.Equal(t, 1, news.Died)
		require.Zero(t, number(t, dsn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"))
		b.Update(func(batch *storetest.Batch) { batch.Send(id, id, `1`, nil) })
		batch.Send(id, id, `2`, nil)
		return nil
	})
	require.Error(t, err)
	b.Check()
	require.Eventually(t, func() bool {
		return !errors.Is(a.TryUpdate(func(*storetest.Batch) error { return nil }), store.ErrUnavailable)
	},
		time.Minute, time.Millisecond)
	a.Resume()
	a.Update(func(b *storetest.Batch) { b.Send(id, id, `3`, nil) })
	a.Check()
}

// A pooler keeps its clients as the server is restarted behind it. What the engines commit continues in the order of positions.
func TestAServerIsRestartedBehindAPooler(t *testing.T) {
	t.Parallel()
	pgtest.NeedsPooler(t)
	server := pgtest.Restartable(t)
	dsn := pgtest.Pooler(t, server.DSN)(server.DSN)
	a := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn, postgres.Poll(0))}, 1)
	var id workitem.CaseID
	a.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	require.NoError(t, server.Restart(false))
	b := storetest.NewWorld(t, sharedOpener{postgres.Open(server.DSN)}, 2) // counts positions for the restarted server
	b.Resume()
	require.NoError(t, step(b, id, false))
	awake(t, a)
	var stale *store.StaleError
	require.ErrorAs(t, step(a, id, false), &stale)
	a.Resume()
	require.NoError(t, step(a, id, false))
	a.Check()
}
