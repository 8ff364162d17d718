package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
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

// Many programs that open an empty database at once make its tables once, and all of them are there.
func TestManyStoresOpenAnEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	n := testsize.Pick(12, 64, 64)
	dsn := pgtest.Database(t)
	stores, errs := make([]store.Store, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			stores[i], errs[i] = sharedOpener{postgres.Open(dsn)}.Open(context.Background(), store.Options{})
		})
	}
	all.Wait()
	for i := range n {
		require.NoError(t, errs[i])
	}
	require.Equal(t, int64(n), number(t, dsn, "SELECT count(*) FROM tasq.processes WHERE state = 'live'"))
	require.Equal(t, number(t, dsn, "SELECT count(DISTINCT version) FROM tasq.schema_migrations"), number(t, dsn, "SELECT count(*) FROM tasq.schema_migrations"))
	for i := range n {
		require.NoError(t, stores[i].Close())
	}
	require.Zero(t, number(t, dsn, "SELECT count(*) FROM tasq.processes"))
}

// execute runs a statement on a connection of its own.
// role makes a role without rights, which is dropped with the test, and returns its name and the connection string of a user that takes
// it.
func role(t *testing.T, dsn string) (name, as string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	name = "tasq_role" + u.Path[len("/tasq_test"):]
	execOn(t, dsn, "CREATE ROLE "+name)
	t.Cleanup(func() { execOn(t, dsn, "DROP OWNED BY "+name, "DROP ROLE "+name) })
	u.RawQuery += "&role=" + name
	return name, u.String()
}

// A role that may only read and write rows opens tables that are there. On a database without them the error says which right it lacks.
func TestARoleWithoutTheRightToMakeTables(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	role, as := role(t, dsn)
	limited := sharedOpener{postgres.Open(as)}

	_, err := limited.Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.ErrorContains(t, err, "run tasq migrate, or open it once, with a role that may make tables")
	_, err = sharedOpener{postgres.Open(as, postgres.NoMigrate())}.Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrNotFound)

	s, err := postgres.Open(dsn).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	for _, o := range []store.Options{{}, {ReadOnly: true}} {
		_, err = limited.Open(t.Context(), o)
		require.ErrorIs(t, err, store.ErrReadOnly)
		require.ErrorContains(t, err, "the role lacks a right: grant it to the role")
		require.ErrorContains(t, err, "permission denied for schema tasq")
	}
	execOn(t, dsn, "GRANT USAGE ON SCHEMA tasq TO "+role, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tasq TO "+role)
	w := storetest.NewWorld(t, limited, 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	require.NoError(t, step(w, id, false))
	w.Check()
	w.Reopen()
	w.Check()
}

// What a deferred constraint refuses is the fault of the command that did it: the others of the transaction happen.
func TestADeferredConstraintFailsItsOwnCommand(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, postgres.Open(prepared.Database(t)), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) {
		id = b.Start(`1`)
		_, err := b.Tx.DB().ExecContext(t.Context(), "CREATE TABLE parent (id int PRIMARY KEY); "+
			"CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
		require.NoError(t, err)
	})
	insert := func(b *storetest.Batch, child, parent int) error {
		return b.Tx.Savepoint(t.Context(), func() error {
			_, err := b.Tx.DB().ExecContext(t.Context(), fmt.Sprintf("INSERT INTO child VALUES (%d, %d)", child, parent))
			if err == nil && parent < 3 {
				_, err = b.Tx.DB().ExecContext(t.Context(), fmt.Sprintf("INSERT INTO parent VALUES (%d)", parent))
			}
			return err
		})
	}
	w.Update(func(b *storetest.Batch) {
		require.NoError(t, insert(b, 1, 1), "the parent comes later, as the constraint lets it")
		require.ErrorContains(t, insert(b, 3, 3), "foreign key")
		require.NoError(t, insert(b, 2, 2), "the constraint is as deferred as before")
		b.Send(id, id, `1`, nil)
	})
	w.View(func(ctx context.Context, r store.Reader) {
		n := 0
		require.NoError(t, r.DB().QueryRowContext(ctx, "SELECT count(*) FROM child").Scan(&n))
		require.Equal(t, 2, n)
	})
	w.Check()
}

// In a long transaction, deferred triggers run once for each command, and the constraints are as deferred as before, also
// if a command has changed that.
func TestDeferredTriggersRunOnceInALongTransaction(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, postgres.Open(pgtest.Database(t)), 1)
	var id workitem.CaseID
	w.Update(func(b *storetest.Batch) {
		id = b.Start(`1`)
		_, err := b.Tx.DB().ExecContext(t.Context(), `CREATE SCHEMA "of the User"; CREATE SEQUENCE runs;
			CREATE TABLE parent (id int PRIMARY KEY);
			CREATE TABLE "of the User".child (id int CONSTRAINT "a; name" UNIQUE DEFERRABLE, parent int CONSTRAINT "its parent" REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
			CREATE FUNCTION ran() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''runs''); RETURN NULL; END';
			CREATE CONSTRAINT TRIGGER "says ""run""" AFTER INSERT ON parent DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ran()`)
		require.NoError(t, err)
	})
	const commands = 200
	w.Update(func(b *storetest.Batch) {
		exec := func(query string, args ...any) {
			_, err := b.Tx.DB().ExecContext(t.Context(), fmt.Sprintf(query, args...))
			require.NoError(t, err)
		}
		for i := range commands {
			lost := i%10 == 3
			err := b.Tx.Savepoint(t.Context(), func() error {
				exec(`INSERT INTO "of the User".child VALUES (%d, %d)`, i, i)
				if !lost {
					exec("INSERT INTO parent VALUES (%d)", i)
				}
				if i%10 == 4 {
					exec(`SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS "of the User"."a; name" DEFERRED`)
				}
				return nil
			})
			if lost {
				require.ErrorContains(t, err, "its parent")
			} else {
				require.NoError(t, err)
			}
		}
		b.Send(id, id, `1`, nil)
	})
	w.View(func(ctx context.Context, r store.Reader) {
		children, runs := 0, 0
		require.NoError(t, r.DB().QueryRowContext(ctx, `SELECT (SELECT count(*) FROM "of the User".child), (SELECT last_value FROM runs)`).Scan(&children, &runs))
		require.Equal(t, commands*9/10, children)
		require.Less(t, runs, 2*commands, "one for each, and those of the first few commands again")
	})
	w.Check()
}

// A root case that another transaction has locked for long is named, so that the commands on other cases can continue without it.
func TestALockedCaseIsNamed(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var id, other workitem.CaseID
	w.Update(func(b *storetest.Batch) { id, other = b.Start(`1`), b.Start(`2`) })
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "BEGIN")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "SELECT FROM tasq.cases WHERE root = $1 FOR UPDATE", [16]byte(id))
	require.NoError(t, err)
	var stale *store.StaleError
	require.ErrorAs(t, w.TryUpdate(func(b *storetest.Batch) error {
		b.Send(other, other, `1`, nil)
		b.Send(id, id, `1`, nil)
		return nil
	}), &stale)
	require.Equal(t, []workitem.CaseID{id}, stale.Roots)
	require.NoError(t, step(w, other, false))
	w.Check()
}

// The other engines hear of a commit after a time of quiet also if its engine dies right behind it, with no time to notify them: they look what
// became of it at once, and not when their pause is over.
func TestTheFirstCommitAfterQuietNotifies(t *testing.T) {
	t.Parallel()
	o := sharedOpener{postgres.Open(prepared.Database(t))}
	a, b := storetest.NewWorld(t, o, 1), storetest.NewWorld(t, o, 2)
	dying, other := fleetOf(t, a), fleetOf(t, b)
	news, err := dying.Tick(t.Context(), store.EngineState{})
	require.NoError(t, err)
	require.Equal(t, 1, news.Others)
	var root workitem.CaseID
	a.Update(func(b *storetest.Batch) { root = b.Start(`1`) })
	killer, ok := a.Store.(store.Killer)
	require.True(t, ok)
	require.NoError(t, killer.Kill())
	for told := false; !told; {
		select {
		case hint := <-other.Hints():
			told = slices.Contains(hint.Roots, root)
		case <-time.After(10 * time.Second): // as long as an engine looks at nothing
			t.Fatal("it is not told")
		}
	}
}

func fleetOf(t *testing.T, w *storetest.World) store.Fleet {
	t.Helper()
	fleet, ok := w.Store.(store.Fleet)
	require.True(t, ok)
	return fleet
}
