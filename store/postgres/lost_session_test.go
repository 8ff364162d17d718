package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// A connection is lost before the commit, and the server does not learn of it: its session is in a transaction that has locked a case. The
// engine ends it when it has a new connection, so neither it nor another engine waits for the lock.
func TestTheSessionOfALostConnectionKeepsNoLock(t *testing.T) {
	t.Parallel()
	direct := prepared.Database(t)
	endsLost(t, direct, direct)
}

// The same if the connection is lost on the way to a pooler, which keeps its own to the server.
func TestTheSessionOfALostConnectionToAPoolerKeepsNoLock(t *testing.T) {
	t.Parallel()
	through := pooler(t)
	direct := prepared.Database(t)
	endsLost(t, direct, through(direct), postgres.Poll(0))
}

func endsLost(t *testing.T, direct, way string, options ...postgres.Option) {
	p, dsn := pgproxy.New(t, way)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn, options...)}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	p.Break(pgproxy.Late, "is lost")
	err := w.TryUpdate(func(b *storetest.Batch) error {
		if _, err := b.Tx.(store.SharedTx).LockCase(context.Background(), id, true); err != nil {
			return err
		}
		_, err := b.Tx.DB().ExecContext(context.Background(), "SELECT 'is lost'")
		return err
	})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Equal(t, 1, p.Met())
	require.NoError(t, step(w, id, false), "the first command on the new connection has the case")
	require.Eventually(t, func() bool {
		return number(t, direct, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'") == 0
	}, time.Minute, 10*time.Millisecond)
	p.Deliver()
	w.Check()
}

// The engine that declares another one dead ends its session, which may be joining anew at that moment. It joins on a new connection then, and the
// command gets the error after which it is executed again.
func TestAnEngineThatLosesItsSessionWhileItJoinsAnewJoins(t *testing.T) {
	t.Parallel()
	for _, fault := range []pgproxy.Fault{pgproxy.Request, pgproxy.Reply} {
		for _, at := range []string{"INSERT INTO tasq.processes", "COMMIT"} {
			t.Run(string(fault)+" "+at, func(t *testing.T) { joinsAnew(t, fault, at) })
		}
	}
}

func joinsAnew(t *testing.T, fault pgproxy.Fault, at string) {
	direct := prepared.Database(t)
	p, dsn := pgproxy.New(t, direct)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	number(t, direct, "WITH d AS (UPDATE tasq.processes SET state = 'dead' RETURNING 1) SELECT count(*) FROM d")
	joins, broken := false, false
	p.Decide(func(statement string) pgproxy.Fault {
		joins = joins || strings.HasPrefix(statement, "INSERT INTO tasq.processes")
		if broken || !joins || !strings.HasPrefix(statement, at) {
			return ""
		}
		broken = true
		return fault
	})
	err := step(w, id, false)
	require.ErrorIs(t, err, store.ErrFenced)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, 1, p.Met())
	require.NoError(t, step(w, id, false))
	w.Check()
}
