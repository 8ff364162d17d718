package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
)

// What waits in vain for a lock names the session that has it, be it of a table or of a row, of Tasq or of the user.
func TestTheHolderOfALockIsNamed(t *testing.T) {
	t.Parallel()
	commit := func(w *storetest.World) error {
		return w.TryUpdate(func(b *storetest.Batch) error { b.Start(`1`); return nil })
	}
	sql := func(w *storetest.World) error {
		return w.TryUpdate(func(b *storetest.Batch) error {
			_, err := b.Tx.DB().ExecContext(context.Background(), "UPDATE accounts SET n = n + 1")
			return err
		})
	}
	read := func(w *storetest.World) error {
		return w.Store.View(context.Background(), func(r store.Reader) error {
			_, err := r.Cases(context.Background(), store.CaseFilter{})
			return err
		})
	}
	for name, at := range map[string]struct {
		lock string
		do   func(*storetest.World) error
	}{
		"a table, for all":             {"LOCK TABLE tasq.cases IN ACCESS EXCLUSIVE MODE", commit},
		"a table, for an index":        {"LOCK TABLE tasq.journal IN SHARE MODE", commit},
		"a table, read":                {"LOCK TABLE tasq.cases IN ACCESS EXCLUSIVE MODE", read},
		"the row of a user":            {"UPDATE accounts SET n = 7", sql},
		"the table of a user":          {"LOCK TABLE accounts", sql},
		"the row of the engine":        {"SELECT FROM tasq.processes FOR UPDATE", commit},
		"a table behind a waiting one": {"SELECT FROM tasq.cases", commit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := prepared.Database(t)
			w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
			holder := session(t, dsn, "holder", "CREATE TABLE accounts (n int); INSERT INTO accounts VALUES (1)")
			_, err := holder.Exec(t.Context(), "BEGIN; "+at.lock)
			require.NoError(t, err)
			if name == "a table behind a waiting one" {
				waiting := session(t, dsn, "waiting", "SET lock_timeout = '10s'")
				ended := make(chan error, 1)
				go func() {
					_, err := waiting.Exec(context.Background(), "BEGIN; LOCK TABLE tasq.cases IN ACCESS EXCLUSIVE MODE")
					ended <- err
				}()
				defer func() { <-ended }()
				defer func() { _, _ = holder.Exec(context.Background(), "ROLLBACK") }()
				require.Eventually(t, func() bool {
					var n int
					err := holder.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted", waiting.PgConn().PID()).Scan(&n)
					return err == nil && n > 0
				}, 10*time.Second, 10*time.Millisecond)
			}
			named := fmt.Sprintf(", held by session %d (holder, idle in transaction, role %s), whose transaction began ", holder.PgConn().PID(), holder.Config().User)
			for range 5 { // on a busy machine the look, which needs a connection, may not end within the second that it has
				err = at.do(w)
				require.ErrorIs(t, err, store.ErrUnavailable)
				if strings.Contains(err.Error(), named) {
					return
				}
			}
			require.ErrorContains(t, err, named)
		})
	}
}

// session is one of another program.
func session(t *testing.T, dsn, name, prepare string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	_, err = c.Exec(t.Context(), fmt.Sprintf("SET application_name = '%s'; %s", name, prepare))
	require.NoError(t, err)
	return c
}
