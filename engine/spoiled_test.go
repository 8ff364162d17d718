package engine_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
)

// A statement of a function fails on PostgreSQL, and the function ignores that. Whatever it does next, the command fails with what the server
// said about that statement, and not with its refusal of a later one; other commands are not affected.
func TestTheErrorOfTheFirstStatementIsTheCause(t *testing.T) {
	f := newFleet(t)
	other, e := f.open(engine.Config{}, release("1")), f.open(engine.Config{}, release("1"))
	for name, then := range map[string]func(tx *engine.Tx) error{
		"nothing": func(*engine.Tx) error { return nil },
		"a statement": func(tx *engine.Tx) error {
			_, err := tx.DB().ExecContext(t.Context(), "SELECT 1")
			return err
		},
		"a case that is read": func(tx *engine.Tx) error {
			_, err := tx.Case(t.Context(), startOn(t, other, "order", `0`))
			return err
		},
		"a command on a case": func(tx *engine.Tx) error {
			_, err := tx.Do(t.Context(), workflow.Send(startOn(t, other, "order", `0`), "number", 5))
			return err
		},
		"a key that is looked up": func(tx *engine.Tx) error {
			_, err := tx.Do(t.Context(), workflow.Start("order", []byte(`0`), workflow.Key("k")))
			return err
		},
		"a topic": func(tx *engine.Tx) error {
			_, err := tx.Do(t.Context(), workflow.Broadcast("number", 5))
			return err
		},
		"a setting": func(tx *engine.Tx) error {
			_, err := tx.Do(t.Context(), workflow.PauseQueue("other"))
			return err
		},
	} {
		for _, ignores := range []bool{false, true} {
			err := e.Update(t.Context(), func(tx *engine.Tx) error {
				_, _ = tx.DB().ExecContext(t.Context(), "INSERT INTO nowhere VALUES (1)")
				if err := then(tx); !ignores {
					return err
				}
				return nil
			})
			require.ErrorContains(t, err, `relation "nowhere" does not exist`, name)
			require.False(t, strings.Contains(err.Error(), "25P02"), "%s: %v", name, err)
		}
		require.Equal(t, `completed: "1: 5"`, ends(t, e, sent(t, e)), name)
	}
}

// A function whose SQL ends its own connection is repeated, as after a restart of the server, and the log says which step and why.
func TestAStepThatEndsItsConnectionIsLogged(t *testing.T) {
	f := newFleet(t)
	runs := 0
	w, _ := function(t, "work", func(ctx context.Context, n int) (int, error) {
		return step.Tx(ctx, "effect", func(ctx context.Context, db domain.DB) (int, error) {
			if runs++; runs > 2 {
				return n, nil
			}
			_, err := db.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return n, err
		})
	})
	log := &lines{}
	e, err := engine.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}.Open(t.Context(), postgres.Open(f.dsn), w)
	require.NoError(t, err)
	id := startOn(t, e, "work", `1`)
	require.Equal(t, "completed: 1", ends(t, e, id))
	require.NoError(t, e.Close())
	require.Contains(t, log.String(), `msg="a step could not be stored; it is tried again`)
	require.Contains(t, log.String(), `step="step effect"`)
	require.Contains(t, log.String(), "case="+id.String())
	require.Contains(t, log.String(), "terminating connection due to administrator command")
	require.Contains(t, log.String(), `msg="a fault is over" of=steps times=2`)
}
