package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// An engine with nothing to do is declared dead, and its connection for commits is ended. The heartbeat is the first to notice, so the engine
// takes jobs under its new number before any commit has reported that the old ones are lost: it must not drop the new ones with these.
func TestAnIdleEngineThatRejoinsRunsTheJobsThatItTakes(t *testing.T) {
	f := newFleet(t)
	double, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	f.open(engine.Config{Workers: 4}, double)
	starts := f.open(engine.Config{Workers: -1}, double)
	f.sql("UPDATE tasq.processes SET state = 'dead' WHERE id = (SELECT min(id) FROM tasq.processes)")
	f.sql("SELECT count(pg_terminate_backend(pid)) FROM tasq.processes WHERE id = (SELECT min(id) FROM tasq.processes)")
	var ids []workitem.CaseID
	for range 4 {
		r, err := starts.Do(t.Context(), workflow.Start("double", []byte("21")))
		require.NoError(t, err)
		ids = append(ids, r.Case)
	}
	for _, id := range ids {
		require.Equal(t, "completed: 42", ends(t, starts, id))
	}
}

// The connection is lost in a commit, or before it: the command is executed again with a new one, once.
func TestACommandOutlivesItsConnection(t *testing.T) {
	f := newFleet(t)
	p, dsn := pgproxy.New(t, f.dsn)
	hold, _ := function(t, "hold", func(ctx context.Context, n int) (int, error) { return step.Await[int](ctx, "go") })
	e := fleetOf{t, dsn}.open(engine.Config{Workers: -1}, hold)
	starts := f.open(engine.Config{Workers: -1}, hold)
	for n, at := range []struct {
		statement string
		fault     pgproxy.Fault
	}{
		{"COMMIT", pgproxy.Request}, {"COMMIT", pgproxy.Reply}, {"INSERT INTO tasq.journal", pgproxy.Request},
		{"FROM tasq.messages WHERE root", pgproxy.Request}, // the case is read
	} {
		r, err := starts.Do(t.Context(), workflow.Start("hold", []byte("0")))
		require.NoError(t, err)
		met := p.Met()
		p.Break(at.fault, at.statement)
		_, err = e.Do(t.Context(), workflow.Send(r.Case, "go", 1))
		require.NoError(t, err, at.statement)
		require.Equal(t, met+1, p.Met(), "no statement has %q", at.statement)
		require.Equal(t, n+1, f.sql("SELECT count(*) FROM tasq.messages"))
	}
}

// Another program keeps a case locked. A command on it says who that may be, and works once the lock is released.
func TestALockedCaseNamesTheSession(t *testing.T) {
	f := newFleet(t)
	hold, _ := function(t, "hold", func(ctx context.Context, n int) (int, error) { return step.Await[int](ctx, "go") })
	e := f.open(engine.Config{Workers: 2}, hold)
	r, err := e.Do(t.Context(), workflow.Start("hold", []byte("0")))
	require.NoError(t, err)
	f.until("SELECT count(*) FROM tasq.steps", exactly(1)) // it waits for the event, so no commit of its own meets the lock
	c, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "SET application_name = 'a report'; BEGIN; SELECT FROM tasq.cases FOR UPDATE")
	require.NoError(t, err)
	for range 3 { // the first after a wait of 2 s
		_, err = e.Do(t.Context(), workflow.Send(r.Case, "go", 1))
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, fmt.Sprintf("another transaction has locked case %s, so nothing of this happened: the store is unavailable", r.Case))
		require.ErrorContains(t, err, fmt.Sprintf(" session %d (a report, idle in transaction, role %s), whose transaction began ", c.PgConn().PID(), c.Config().User))
	}
	_, err = c.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	_, err = e.Do(t.Context(), workflow.Send(r.Case, "go", 1))
	require.NoError(t, err)
	require.Equal(t, "completed: 1", ends(t, e, r.Case))
}

// A job becomes one of an engine that is not told of it, as no statement of Tasq does it: the engine finds it, and runs it.
func TestAnEngineFindsJobsThatItOwnsAndDoesNotKnow(t *testing.T) {
	f := newFleet(t)
	polls := fleetOf{t, f.dsn + "&tasq_poll=20ms"} // so that heartbeats follow each other quickly
	double, _ := function(t, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	polls.open(engine.Config{Workers: 4}, double)
	starts := polls.open(engine.Config{Workers: -1}, double)
	f.sql("CREATE FUNCTION give() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
		"SELECT min(id) INTO NEW.holder FROM tasq.processes; NEW.due := NEW.due - 60000000; RETURN NEW; END $$")
	f.sql("CREATE TRIGGER give BEFORE INSERT ON tasq.jobs FOR EACH ROW EXECUTE FUNCTION give()")
	r, err := starts.Do(t.Context(), workflow.Start("double", []byte("21")))
	require.NoError(t, err)
	require.Equal(t, "completed: 42", ends(t, starts, r.Case))
	f.sql("DROP TRIGGER give ON tasq.jobs")
}

// The server ends the sessions of an engine while a caller begins to wait: the wait goes on with a new connection.
func TestAWaitOutlivesItsConnection(t *testing.T) {
	f := newFleet(t)
	hold, _ := function(t, "hold", func(ctx context.Context, n int) (int, error) { return step.Await[int](ctx, "go") })
	e := f.open(engine.Config{Workers: 1}, hold)
	waits := f.open(engine.Config{Workers: -1}, hold)
	r, err := e.Do(t.Context(), workflow.Start("hold", []byte("0")))
	require.NoError(t, err)
	f.sql("SELECT count(pg_terminate_backend(pid)) FROM tasq.processes")
	ended := make(chan error, 1)
	go func() {
		_, err := waits.Wait(t.Context(), r.Case) // the case is not in its memory, so it is read
		ended <- err
	}()
	require.Eventually(t, func() bool {
		_, err := e.Do(t.Context(), workflow.Send(r.Case, "go", 1, workflow.Key("once")))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, <-ended)
}
