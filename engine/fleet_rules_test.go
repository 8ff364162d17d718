package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ahead is a clock that differs from the system's.
type ahead struct {
	retry.Clock
	by time.Duration
}

func (c ahead) Now() time.Time { return c.Clock.Now().Add(c.by) }

// The clocks of two engines are five minutes apart. Both do their work, and what is created in a case later has a higher id, whichever
// engine creates it: events are taken in the order in which they were sent.
func TestClocksThatDiffer(t *testing.T) {
	f := newFleet(t)
	ordered, _ := function(t, "ordered", func(ctx context.Context, _ int) (int, error) {
		if _, err := step.Await[int](ctx, "go"); err != nil {
			return 0, err
		}
		first, err := step.Await[int](ctx, "number")
		if err != nil {
			return 0, err
		}
		second, err := step.Await[int](ctx, "number", step.Named("second"))
		return 10*first + second, err
	})
	a := f.open(engine.Config{Clock: ahead{retry.SystemClock, 5 * time.Minute}}, ordered)
	b := f.open(engine.Config{}, ordered)
	for _, engines := range [][3]*engine.Engine{{a, a, b}, {a, b, a}, {b, a, b}, {b, b, a}} {
		id := startOn(t, engines[0], "ordered", `0`)
		for n := range 2 {
			_, err := engines[1+n].Do(t.Context(), workflow.Send(id, "number", n+1))
			require.NoError(t, err)
		}
		_, err := engines[0].Do(t.Context(), workflow.Send(id, "go", 0))
		require.NoError(t, err)
		require.Equal(t, "completed: 12", ends(t, engines[0], id))
	}
}

// A snapshot that another program holds keeps rows from being vacuumed, and holds no command up.
func TestASnapshotThatIsHeld(t *testing.T) {
	f := newFleet(t)
	w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	e := f.open(engine.Config{}, w)
	c, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ")
	require.NoError(t, err)
	var before, after int
	require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM tasq.cases").Scan(&before))
	for n := range 20 {
		require.Equal(t, fmt.Sprintf("completed: %d", 2*n), ends(t, e, startOn(t, e, "double", fmt.Sprint(n))))
	}
	require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM tasq.cases").Scan(&after))
	require.Equal(t, before, after, "the snapshot is what it was")
	require.Equal(t, before+20, f.sql("SELECT count(*) FROM tasq.cases"))
}

// Only the command fails whose SQL meets a deadlock, a serialization failure or a timeout, or breaks a deferred constraint; those that
// share its transaction happen.
func TestOnlyTheGuiltyFail(t *testing.T) {
	f := newFleet(t)
	w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	e := f.open(engine.Config{}, w)
	f.sql("CREATE TABLE mine (n int PRIMARY KEY, other int REFERENCES mine DEFERRABLE INITIALLY DEFERRED)")
	f.sql("INSERT INTO mine VALUES (1)")
	c, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "BEGIN; UPDATE mine SET other = 1 WHERE n = 1") // the lock that one of them waits for
	require.NoError(t, err)
	raise := func(code string) string {
		return "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '" + code + "'; END $$"
	}
	for _, sql := range []string{
		raise("40001"), raise("40P01"), "UPDATE mine SET other = NULL WHERE n = 1", "SET LOCAL statement_timeout = '20ms'; SELECT pg_sleep(20)",
		"INSERT INTO mine VALUES (2, 3)",
	} {
		var all sync.WaitGroup
		ids, errs := make([]workitem.CaseID, 20), make([]error, 20)
		var guilty error
		all.Go(func() {
			guilty = e.Update(t.Context(), func(tx *engine.Tx) error {
				_, err := tx.DB().ExecContext(t.Context(), sql)
				return err
			})
		})
		for i := range ids {
			all.Go(func() {
				var r workflow.Result
				if r, errs[i] = e.Do(t.Context(), workflow.Start("double", []byte(`1`))); errs[i] == nil {
					ids[i] = r.Case
				}
			})
		}
		all.Wait()
		require.Error(t, guilty, sql)
		for i, id := range ids {
			require.NoError(t, errs[i], sql)
			require.Equal(t, "completed: 2", ends(t, e, id))
		}
	}
	require.Equal(t, 1, f.sql("SELECT count(*) FROM mine"))
}

// A transaction that began first commits last. Who follows all cases meets both entries, in the order of their positions.
func TestAWatchOfAllCasesMissesNoLateCommit(t *testing.T) {
	f := newFleet(t)
	w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	a := f.open(engine.Config{Workers: -1}, w)
	b := f.open(engine.Config{Workers: -1}, w)
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan *store.Entry, 10)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for e, err := range a.Watch(ctx, workitem.CaseID{}, 0) {
			if err != nil {
				return
			}
			seen <- e
		}
	}()
	var early, late workitem.CaseID
	require.NoError(t, b.Update(t.Context(), func(tx *engine.Tx) error {
		if _, err := tx.DB().ExecContext(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			return err
		}
		early = startOn(t, a, "double", `1`) // commits while this transaction is under way
		result, err := tx.Do(t.Context(), workflow.Start("double", json.RawMessage(`2`)))
		late = result.Case
		return err
	}))
	require.Equal(t, []workitem.CaseID{late, early}, []workitem.CaseID{(<-seen).Root, (<-seen).Root})
	stop()
	<-watched
}

// The user's SQL of two engines locks rows in opposite orders. The server ends one transaction, whose Update fails as a conflict, or is
// repeated if it may be; the other one happens.
func TestUpdatesInADeadlock(t *testing.T) {
	for name, opts := range map[string][]engine.UpdateOption{"once": nil, "repeatable": {engine.Repeatable()}} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.sql(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''100ms''', current_database()); END $$`)
			w, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
			engines := [2]*engine.Engine{f.open(engine.Config{}, w), f.open(engine.Config{}, w)}
			f.sql("CREATE TABLE mine (n int PRIMARY KEY, added int)")
			f.sql("INSERT INTO mine VALUES (0, 0), (1, 0)")
			var all, first sync.WaitGroup
			first.Add(2)
			var errs [2]error
			var started [2]workitem.CaseID
			for i, e := range engines {
				all.Go(func() {
					arrive := sync.OnceFunc(first.Done)
					errs[i] = e.Update(t.Context(), func(tx *engine.Tx) error {
						r, err := tx.Do(t.Context(), workflow.Start("double", []byte(`1`)))
						if err != nil {
							return err
						}
						started[i] = r.Case
						for k := range 2 {
							if _, err := tx.DB().ExecContext(t.Context(), "UPDATE mine SET added = added + 1 WHERE n = $1", (i+k)%2); err != nil {
								return err
							}
							arrive()
							first.Wait() // each has locked one row
						}
						return nil
					}, opts...)
				})
			}
			all.Wait()
			happened := 0
			for i, err := range errs {
				if err == nil {
					happened++
					require.Equal(t, "completed: 2", ends(t, engines[1-i], started[i]))
					continue
				}
				require.ErrorIs(t, err, store.ErrConflict)
			}
			require.Equal(t, 1+len(opts), happened)
			require.Equal(t, 2*happened, f.sql("SELECT sum(added)::int FROM mine"))
			require.Equal(t, happened, f.sql("SELECT count(*) FROM tasq.cases"))
		})
	}
}
