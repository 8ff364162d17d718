package postgres_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

const askForNumber = "BEGIN ISOLATION LEVEL read committed; SELECT pg_current_xact_id()"

// The updates of a busy engine do not ask for the number of their transaction: the commit before did.
func TestABusyEngineBeginsItsTransactionsAhead(t *testing.T) {
	t.Parallel()
	p, dsn := pgproxy.New(t, prepared.Database(t))
	w := storetest.NewWorld(t, postgres.Open(dsn, postgres.KeepAhead(time.Hour)), 1)
	var asked atomic.Int64
	p.Decide(func(statement string) pgproxy.Fault {
		if strings.HasPrefix(statement, askForNumber) {
			asked.Add(1)
		}
		return ""
	})
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	for i := range 6 {
		if i == 3 {
			w.Update(func(b *storetest.Batch) { // SQL of the user's uses it, too
				_, err := b.Tx.DB().ExecContext(t.Context(), "CREATE TABLE effects (at timestamptz DEFAULT now())")
				require.NoError(t, err)
			})
		}
		require.NoError(t, step(w, id, i == 4))
	}
	require.EqualValues(t, 3, asked.Load(), "the first, and those that follow SQL of the user's, whose commit is its own round trip")
	require.Equal(t, 1, effects(t, w))
	w.Check()
	w.Reopen()
	w.Check()
}

// The server's statistics, by which it vacuums and analyzes, have the work of an engine that is busy without a pause.
func TestTheStatisticsHaveTheWorkOfABusyEngine(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn, postgres.KeepAhead(time.Hour)), 1)
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	begun := time.Now()
	for written := 0; written < 100; {
		require.Less(t, time.Since(begun), time.Minute, "%d entries are known", written)
		for range 20 {
			w.Update(func(b *storetest.Batch) { b.Send(id, id, `1`, nil) })
		}
		require.NoError(t, admin.QueryRow(t.Context(), "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'journal'").Scan(&written))
	}
}

// A transaction that no update wants is ended, so that it holds nothing back.
func TestATransactionThatWasBegunAheadEnds(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]struct {
		keep time.Duration
		do   func(*storetest.World)
	}{
		"by itself": {time.Millisecond, func(*storetest.World) {}},
		"by Close":  {time.Hour, func(w *storetest.World) { w.Reopen() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := prepared.Database(t)
			w := storetest.NewWorld(t, postgres.Open(dsn, postgres.KeepAhead(after.keep)), 1)
			w.Update(func(b *storetest.Batch) { b.Start(`1`) })
			after.do(w)
			admin, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer admin.Close(context.Background())
			require.Eventually(t, func() bool {
				var open int
				require.NoError(t, admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "+
					"AND backend_xid IS NOT NULL").Scan(&open))
				return open == 0
			}, time.Minute, time.Millisecond)
			w.Update(func(b *storetest.Batch) { b.Start(`2`) })
			w.Check()
		})
	}
}

// An update that appends nothing, and so needs no number, is durable too when it follows one that began a transaction ahead.
func TestAnUpdateWithoutEntriesIsDurableBehindOneThatBeganAhead(t *testing.T) {
	t.Parallel()
	opener := postgres.Open(prepared.Database(t), postgres.KeepAhead(time.Hour))
	w := storetest.NewWorld(t, opener, 1)
	leave, ok := opener.(interface {
		Leave(ctx context.Context, command json.RawMessage) error
	})
	require.True(t, ok)
	require.NoError(t, leave.Leave(t.Context(), json.RawMessage(`{"do": "this"}`)))
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	w.Update(func(b *storetest.Batch) {
		require.NoError(t, b.Tx.Set(t.Context(), "limit/a", json.RawMessage(`1`)))
	})
	w.Crash()
	w.View(func(ctx context.Context, r store.Reader) {
		all, err := r.Settings(ctx)
		require.NoError(t, err)
		require.Equal(t, []store.Setting{{Name: "limit/a", Value: json.RawMessage(`1`)}}, all)
	})
	w.Update(func(b *storetest.Batch) { b.Start(`2`) })
	w.Update(func(b *storetest.Batch) {
		left, err := b.Tx.Requests(t.Context(), 0, 10)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.NoError(t, b.Tx.Reply(t.Context(), left[0].ID, store.Answer{Code: "refused"}))
	})
	w.Crash()
	w.Update(func(b *storetest.Batch) {
		left, err := b.Tx.Requests(t.Context(), 0, 10)
		require.NoError(t, err)
		require.Empty(t, left, "it was replied to")
	})
	w.Check()
}

// The connection of a transaction that was begun ahead is lost: one update may find that out, and nothing of it happened.
func TestAConnectionIsLostWithATransactionThatWasBegunAhead(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn, postgres.KeepAhead(time.Hour)), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	for range 5 {
		require.Eventually(t, func() bool { // the commit before does not wait until it has begun
			tag, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() "+
				"AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()")
			require.NoError(t, err)
			return tag.RowsAffected() == 1
		}, time.Minute, time.Millisecond, "the transaction that waits for its update")
		if err := step(w, id, false); err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.NoError(t, step(w, id, false))
		}
		w.Check()
	}
}
