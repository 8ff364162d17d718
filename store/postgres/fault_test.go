package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestOneEngineAtATime(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	_, err := postgres.Open(dsn).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorContains(t, err, "another engine (")
	reader, err := postgres.Open(dsn).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, reader.View(t.Context(), func(r store.Reader) error {
		w.Want.Check(t.Context(), t, r)
		return nil
	}))
	require.NoError(t, reader.Close())
	other := storetest.NewWorld(t, postgres.Open(dsn, postgres.Schema("other")), 1) // another schema is another database
	other.Check()
	w.Reopen()
	w.Check()
}

func TestOpenWithoutTablesOrServer(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	for _, o := range []store.Options{{ReadOnly: true}, {}} {
		_, err := postgres.Open(dsn, postgres.NoMigrate()).Open(t.Context(), o)
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	_, err := postgres.Open(dsn, postgres.Schema(`x"y`)).Open(t.Context(), store.Options{})
	require.Error(t, err)
	_, err = postgres.Open("postgres://nobody@127.0.0.1:1/none?connect_timeout=1").Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrUnavailable)
}

// step is a command on the one case of a world, with SQL of the user's or without.
func step(w *storetest.World, id workitem.CaseID, sql bool) error {
	return w.TryUpdate(func(b *storetest.Batch) error {
		if sql {
			if _, err := b.Tx.DB().ExecContext(context.Background(), "INSERT INTO effects DEFAULT VALUES"); err != nil {
				return err
			}
		}
		b.Send(id, id, `1`, nil)
		return nil
	})
}

func effects(t *testing.T, w *storetest.World) (n int) {
	t.Helper()
	w.View(func(ctx context.Context, r store.Reader) {
		require.NoError(t, r.DB().QueryRowContext(ctx, "SELECT count(*) FROM effects").Scan(&n))
	})
	return n
}

// A commit whose reply is lost is acknowledged if it happened, and reported as not done if it did not: nothing is there once
// without being acknowledged, and nothing twice.
func TestTheOutcomeOfALostCommitIsFoundOut(t *testing.T) {
	t.Parallel()
	p, dsn := pgproxy.New(t, prepared.Database(t))
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) {
		id = b.Start(`1`)
		_, err := b.Tx.DB().ExecContext(t.Context(), "CREATE TABLE effects (at timestamptz DEFAULT now())")
		require.NoError(t, err)
	})
	done := 0
	for _, sql := range []bool{false, true} {
		for _, from := range []string{"event paid", "COMMIT", "COMMIT"} { // the name of the command goes before the COMMIT
			require.NoError(t, step(w, id, sql)) // prepares the statements of a new connection
			p.Break(pgproxy.Reply, "COMMIT")
			require.NoError(t, step(w, id, sql), "it happened")
			w.Check()
			require.NoError(t, step(w, id, sql))
			p.Break(pgproxy.Request, from)
			err := step(w, id, sql)
			require.ErrorIs(t, err, store.ErrUnavailable, "it did not happen")
			require.True(t, errors.Is(err, store.ErrNotCommitted) || sql && errors.Is(err, store.ErrDisconnected), "%v", err)
			w.Check()
			if sql {
				done += 3
			}
		}
	}
	require.Equal(t, done, effects(t, w))
	w.Reopen()
	w.Check()
}

// The connection on which the outcome is looked up is lost, too. What happened is not said to have failed.
func TestTheOutcomeIsFoundOutThoughTheNewConnectionIsLost(t *testing.T) {
	t.Parallel()
	const asks = "SELECT 1 FROM tasq.journal WHERE root = $1 AND seq = $2 AND process = $3"
	p, dsn := pgproxy.New(t, prepared.Database(t))
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	for losses := 1; losses <= 3; losses++ {
		require.NoError(t, step(w, id, false))
		lost, left := false, losses
		p.Decide(func(statement string) pgproxy.Fault {
			switch {
			case !lost && strings.HasPrefix(statement, "COMMIT"):
				lost = true
				return pgproxy.Reply
			case lost && left > 0 && strings.HasPrefix(statement, asks):
				left--
				return pgproxy.Request
			}
			return ""
		})
		err := w.TryUpdate(func(b *storetest.Batch) error {
			b.Send(id, id, `1`, nil)
			return nil
		})
		p.Decide(func(string) pgproxy.Fault { return "" })
		require.True(t, lost)
		require.Zero(t, left, "the statement that asks is another one now")
		if losses < 3 {
			require.NoError(t, err)
			w.Check()
			continue
		}
		require.ErrorContains(t, err, "could not be found out")
		w.Resume()
	}
}

// The server ends the connections, at any moment: what was acknowledged is there, and what failed is not.
func TestConnectionsThatTheServerEnds(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	failed := 0
	for range testsize.Pick(6, 20, 20) {
		_, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
			"WHERE datname = current_database() AND pid <> pg_backend_pid()")
		require.NoError(t, err)
		for step(w, id, false) != nil {
			failed++
		}
		w.Check()
	}
	t.Logf("%d updates failed", failed)
	require.LessOrEqual(t, failed, 40, "one that finds the connection lost, and one more at most")
}

func TestAnEngineWhosePlaceWasTakenStops(t *testing.T) {
	t.Parallel()
	direct := prepared.Database(t)
	p, dsn := pgproxy.New(t, direct)
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	p.Close() // as a network that fails
	next := storetest.NewWorld(t, postgres.Open(direct), 2)
	next.Resume()
	next.Update(func(b *storetest.Batch) { b.Start(`2`) })
	require.ErrorIs(t, step(w, id, false), store.ErrUnavailable)
	p.Open()
	require.Eventually(t, func() bool { return errors.Is(step(w, id, false), store.ErrLost) }, time.Minute, 10*time.Millisecond)
	next.Update(func(b *storetest.Batch) { b.Start(`3`) })
	next.Check()
}

func TestAnEngineThatWasDeclaredDeadCannotCommit(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	_, err = admin.Exec(t.Context(), "UPDATE tasq.processes SET state = 'dead'")
	require.NoError(t, err)
	require.ErrorIs(t, step(w, id, false), store.ErrLost)
	require.ErrorIs(t, step(w, id, false), store.ErrLost)
	require.NoError(t, w.Store.Close())
	w.Open()
	w.Check()
}

// Errors of the server that concern the whole transaction undo it; others undo what the savepoint did.
func TestErrorsOfUserSQLRollBackSavepointOrTransaction(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, postgres.Open(prepared.Database(t)), 1)
	fail := func(code string) func(*storetest.Batch) error {
		return func(b *storetest.Batch) error {
			b.Start(`1`)
			return b.Tx.Savepoint(context.Background(), func() error {
				_, err := b.Tx.DB().ExecContext(context.Background(),
					"DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '"+code+"'; END $$")
				require.Error(t, err)
				return nil
			})
		}
	}
	for _, code := range []string{"40001", "40P01"} {
		err := w.TryUpdate(fail(code))
		require.ErrorIs(t, err, store.ErrUndone, code)
		require.ErrorIs(t, err, store.ErrConflict, code)
	}
	for _, code := range []string{"55P03", "57014"} {
		err := w.TryUpdate(fail(code))
		require.NotErrorIs(t, err, store.ErrUndone, code)
		require.ErrorIs(t, err, store.ErrUnavailable, code)
	}
	w.Check()
	w.Update(func(b *storetest.Batch) {
		require.Error(t, fail("22012")(b))
		b.Start(`2`)
	})
	w.Check()
}

// Another program that takes the next revision of a stream by force makes the commit fail as a whole.
func TestAnEntryAtARevisionThatIsTakenIsAConflict(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	var id, other workitem.CaseID
	w.Update(func(b *storetest.Batch) { id, other = b.Start(`1`), b.Start(`2`) })
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	_, err = admin.Exec(t.Context(), "INSERT INTO tasq.journal SELECT root, rev + 1, seq + 1000, process, format, at, command, actor, NULL, NULL, '[]' "+
		"FROM tasq.journal WHERE root = $1", [16]byte(id))
	require.NoError(t, err)
	err = w.TryUpdate(func(b *storetest.Batch) error {
		b.Send(other, other, `1`, nil)
		b.Send(id, id, `1`, nil)
		return nil
	})
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = admin.Exec(t.Context(), "DELETE FROM tasq.journal WHERE rev > 1")
	require.NoError(t, err)
	w.Check()
}

// While the disk of the server is full nothing is committed, and the error says so; with some space free, all continues.
func TestAFullDiskOfTheServer(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "+
		"'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$; "+
		"CREATE TRIGGER no_space BEFORE INSERT ON tasq.journal FOR EACH ROW EXECUTE FUNCTION no_space()")
	require.NoError(t, err)
	start := func(b *storetest.Batch) error { b.Start(`1`); return nil }
	err = w.TryUpdate(start)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "the disk of the server is full, so nothing of this happened; free some space there")
	require.ErrorContains(t, err, "No space left on device")
	_, err = c.Exec(t.Context(), "DROP TRIGGER no_space ON tasq.journal; DROP FUNCTION no_space()")
	require.NoError(t, err)
	require.NoError(t, w.TryUpdate(start))
	w.Check()
}
