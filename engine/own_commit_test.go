package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ofCommit makes a table with a deferred trigger that succeeds when it is checked at the end of a command, and fails in the commit: a sequence
// counts its calls, also those of transactions that are rolled back.
const ofCommit = `CREATE TABLE effects (what text); CREATE TABLE checked (how text); CREATE SEQUENCE calls;
	CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('calls') % 2 = 1 THEN RETURN NULL; END IF;
		IF NEW.how = 'end' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
		RAISE EXCEPTION 'the trigger says no';
	END $$;
	CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON checked DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fails()`

func insert(ctx context.Context, db domain.DB, into, value string) error {
	_, err := db.ExecContext(ctx, "INSERT INTO "+into+" VALUES ($1)", value)
	return err
}

// commitWorld is an engine on a database with the tables of ofCommit.
func commitWorld(t *testing.T, workflows ...engine.Workflow) *enginetest.Engine {
	t.Helper()
	e := enginetest.Open(t, postgres.Open(prepared.Database(t)), engine.Config{}, workflows...)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), ofCommit)
		return err
	}))
	return e
}

// calls returns how often the trigger was called since the last time, and has the next call succeed.
func triggerCalls(t *testing.T, e *enginetest.Engine) (n int) {
	t.Helper()
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		return tx.DB().QueryRowContext(t.Context(), "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM calls").Scan(&n)
	}))
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "ALTER SEQUENCE calls RESTART")
		return err
	}))
	return n
}

// A command whose deferred trigger fails or ends the connection in the commit fails alone: the others of its batch are executed, each once.
func TestADeferredTriggerFailsItsCommandInTheCommit(t *testing.T) {
	t.Parallel()
	w := builder.New[string]("w")
	w.Path(w.Start(), builder.Task(w, "t", builder.Work[any, any]{OnEnabled: func(ctx context.Context, a *activities.Activation) error {
		how, err := builder.CaseInputOf[string](a.Case())
		switch {
		case err != nil || how == "plain":
			return err
		case how == "effect":
			return insert(ctx, a.DB(), "effects", how)
		}
		return insert(ctx, a.DB(), "checked", how)
	}}), w.End())
	built := w.MustBuild()
	e := commitWorld(t, built)
	start := func(how string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := built.Start(ctx, e, how)
			return err
		}
	}
	for _, c := range []struct {
		how   string
		is    error
		says  string
		tries int
	}{
		{"raise", store.ErrRefused, "the trigger says no", 1},
		{"end", store.ErrDisconnected, "ends its own connection, 3 times", 3},
	} {
		errs := engine.Together(t.Context(), e.Engine, start("effect"), start(c.how), start("plain"), start("plain"))
		require.ErrorIs(t, errs[1], c.is)
		require.ErrorContains(t, errs[1], c.says)
		for _, i := range []int{0, 2, 3} {
			require.NoError(t, errs[i], "%s: %d", c.how, i)
		}
		require.Equal(t, 2+2*c.tries, triggerCalls(t, e), "with the others, and then alone")
	}
	require.Equal(t, 2, count(t, e, "SELECT count(*) FROM effects"), "each once")
	require.Equal(t, 6, count(t, e, "SELECT count(*) FROM tasq.cases"), "each once")
	require.Zero(t, count(t, e, "SELECT count(*) FROM checked"))
	e.Drain()
}

// What the engine does for a job and fails in the commit is an attempt of the job, which has a bounded number of them.
func TestADeferredTriggerFailsItsJobInTheCommit(t *testing.T) {
	t.Parallel()
	handler := builder.Handler("handled", func(ctx context.Context, c *builder.Completion[string], _ int) error {
		return insert(ctx, c.DB(), "checked", c.Value)
	})
	stepped := builder.MustFunc("step", func(ctx context.Context, how string) (string, error) {
		return step.Tx(ctx, "effect", func(ctx context.Context, db domain.DB) (string, error) { return how, insert(ctx, db, "checked", how) })
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	plain := builder.MustFunc("plain", func(_ context.Context, how string) (string, error) { return how, nil }, builder.Handles(handler))
	w := builder.New[string]("complete")
	w.Path(w.Start(), builder.Task(w, "task", builder.Work[string, string]{
		Input: builder.CaseInput(w), Run: func(_ context.Context, how string) (string, error) { return how, nil },
		Complete: func(ctx context.Context, it *activities.Item, how string) error {
			return insert(ctx, it.DB(), "checked", how)
		},
	}), w.End())
	e := commitWorld(t, stepped, plain, w.MustBuild())
	for how, tries := range map[string]int{"raise": 1, "end": 3} {
		start := func(name string, opts ...workflow.Option) workitem.CaseID {
			t.Helper()
			r, err := e.Do(t.Context(), workflow.Start(name, []byte(`"`+how+`"`), opts...))
			require.NoError(t, err)
			e.Drain()
			return r.Case
		}
		require.Contains(t, ends(t, e.Engine, start("step")), "failed: ", how)
		require.LessOrEqual(t, triggerCalls(t, e), 2+2*tries, how)
		require.Contains(t, ends(t, e.Engine, start("complete")), "failed: ", how)
		require.LessOrEqual(t, triggerCalls(t, e), 2+2*tries, how)
		require.Equal(t, "completed: \""+how+"\"", ends(t, e.Engine, start("plain", builder.OnComplete(handler, 1))), how)
		require.LessOrEqual(t, triggerCalls(t, e), 4+4*tries, how)
	}
	attempts := make(map[string]int)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		jobs, err := r.Jobs(t.Context(), store.JobFilter{States: []state.JobState{state.JobPending}})
		for _, j := range jobs {
			attempts[j.Kind] += j.Attempt
		}
		return err
	}))
	require.Equal(t, map[string]int{state.JobHandler: 2}, attempts)
}

// A completion handler whose rows violate a deferred constraint does not keep its case from ending: a job calls it again.
func TestADeferredConstraintOfAHandlerDoesNotKeepTheCase(t *testing.T) {
	t.Parallel()
	ready := false
	handler := builder.Handler("handled", func(ctx context.Context, c *builder.Completion[string], _ int) error {
		if ready {
			return nil
		}
		_, err := c.DB().ExecContext(ctx, "INSERT INTO parts VALUES (1)")
		return err
	})
	plain := builder.MustFunc("plain", func(_ context.Context, how string) (string, error) { return how, nil }, builder.Handles(handler))
	e := enginetest.Open(t, postgres.Open(prepared.Database(t)), engine.Config{}, plain)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE wholes (id integer PRIMARY KEY); "+
			"CREATE TABLE parts (whole integer REFERENCES wholes DEFERRABLE INITIALLY DEFERRED)")
		return err
	}))
	run, err := plain.Run(t.Context(), e, "a", builder.OnComplete(handler, 1))
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, `completed: "a"`, ends(t, e.Engine, run.ID))
	ready = true
	e.Advance(time.Hour)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		jobs, err := r.Jobs(t.Context(), store.JobFilter{Kind: state.JobHandler})
		require.Len(t, jobs, 1)
		require.Equal(t, state.JobDone, jobs[0].State)
		return err
	}))
}

// A command that a deferred constraint refuses at its end leaves its case as it was, also in memory, and with what another command of the same
// batch has done to it.
func TestADeferredConstraintLeavesTheCaseAsItWas(t *testing.T) {
	t.Parallel()
	w := builder.New[any]("w")
	task := builder.Task(w, "t", builder.Work[any, int]{Complete: func(ctx context.Context, it *activities.Item, whole int) error {
		_, err := it.DB().ExecContext(ctx, "INSERT INTO parts VALUES ($1)", whole)
		return err
	}})
	w.Path(w.Start(), task, w.End())
	built := w.MustBuild()
	e := enginetest.Open(t, postgres.Open(prepared.Database(t)), engine.Config{}, built)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE wholes (id integer PRIMARY KEY); INSERT INTO wholes VALUES (1); "+
			"CREATE TABLE parts (whole integer REFERENCES wholes DEFERRABLE INITIALLY DEFERRED)")
		return err
	}))
	id, err := built.Start(t.Context(), e, nil)
	require.NoError(t, err)
	var item workitem.ID
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
		require.NoError(t, err)
		item = it.ID
	}
	do := func(c workflow.Command) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.Do(ctx, c)
			return err
		}
	}
	errs := engine.Together(t.Context(), e.Engine, do(workflow.Act(item, workitem.Start, nil)), do(workflow.Act(item, workitem.Complete, []byte("2"))), do(workflow.Suspend(id)))
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "parts_whole_fkey")
	require.NoError(t, errs[2])
	require.NoError(t, do(workflow.Resume(id, nil))(t.Context()))
	require.NoError(t, do(workflow.Act(item, workitem.Complete, []byte("1")))(t.Context()), "it is not completed")
	require.Equal(t, "completed: ", ends(t, e.Engine, id))
}
