package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// release is one workflow in the version of a program: it waits for a number, and says which version it continued in.
func release(version string) engine.Workflow {
	return builder.MustFunc("order", func(ctx context.Context, _ int) (string, error) {
		n, err := step.Await[int](ctx, "number")
		return fmt.Sprintf("%s: %d", version, n), err
	}, builder.Version(version))
}

// An old and a new program run side by side. Cases end in the program that has their version, whichever one is asked;
// what starts in the new one is of the new version. When the old one is closed, what it left waits for a program that
// has its version, and is reported as that.
func TestAProgramIsReplacedByItsNextVersion(t *testing.T) {
	f := newFleet(t)
	old := f.open(engine.Config{}, release("1"))
	first, second := startOn(t, old, "order", `0`), startOn(t, old, "order", `0`)
	next := f.open(engine.Config{}, release("2"))
	third := startOn(t, next, "order", `0`)
	send := func(e *engine.Engine, id workitem.CaseID) {
		t.Helper()
		_, err := e.Do(t.Context(), workflow.Send(id, "number", 5))
		require.NoError(t, err)
	}
	send(next, first)
	require.Equal(t, `completed: "1: 5"`, ends(t, next, first))
	send(old, third)
	require.Equal(t, `completed: "2: 5"`, ends(t, old, third))
	require.Equal(t, `completed: "1: 5"`, ends(t, old, sent(t, old)), "the old program starts its own version")

	require.NoError(t, old.Close())
	send(next, second)
	answer, err := next.Why(t.Context(), second)
	require.NoError(t, err)
	require.Contains(t, answer.String(), "version 1")
	require.Len(t, unserved(t, next), 1)
	require.Equal(t, "1", unserved(t, next)[0].Version)
	var stranded []why.StrandedCase
	for s, err := range why.Stranded(t.Context(), next, why.Search{Here: next.Here(), Now: next.Now()}) {
		require.NoError(t, err)
		stranded = append(stranded, s)
	}
	require.Len(t, stranded, 1)
	require.Equal(t, second, stranded[0].Case)
	require.Equal(t, why.CauseNotLoaded, stranded[0].Cause)

	again := f.open(engine.Config{}, release("1"))
	require.Equal(t, `completed: "1: 5"`, ends(t, next, second))
	require.NoError(t, again.Close())
}

// sent is a case that is started and gets its number by one engine.
func sent(t *testing.T, e *engine.Engine) workitem.CaseID {
	t.Helper()
	id := startOn(t, e, "order", `0`)
	_, err := e.Do(t.Context(), workflow.Send(id, "number", 5))
	require.NoError(t, err)
	return id
}

// A program that is too old for the tables says so and stops, whatever it wants of them, and also one that runs already when a
// newer one migrates them.
func TestAProgramThatIsTooOldStops(t *testing.T) {
	t.Parallel()
	f := fleetOn(t, pgtest.Database(t))
	w := release("1")
	running := f.open(engine.Config{}, w)
	waiting := startOn(t, running, "order", `0`)
	waits := make(chan error, 1)
	go func() {
		_, err := running.Wait(t.Context(), waiting)
		waits <- err
	}()
	// What a migration does that names version 9999 as the oldest program.
	f.sql("INSERT INTO tasq.schema_migrations (version, name, checksum, applied) VALUES (9999, 'of the future', 'x', 0)")
	f.sql("INSERT INTO tasq.meta (name, value) VALUES ('oldest_program', 9999) ON CONFLICT (name) DO UPDATE SET value = 9999")
	f.sql("UPDATE tasq.processes SET state = 'dead'")
	defer f.sql("DELETE FROM tasq.schema_migrations WHERE version = 9999")
	_, err := engine.Open(t.Context(), postgres.Open(f.dsn), w)
	require.ErrorIs(t, err, store.ErrNewer)
	require.ErrorContains(t, err, "9999")
	_, err = postgres.Open(f.dsn).Open(t.Context(), store.Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrNewer)
	_, err = postgres.Open(f.dsn, postgres.NoMigrate()).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrNewer)

	_, err = running.Do(t.Context(), workflow.Start("order", []byte(`0`)))
	require.ErrorIs(t, err, store.ErrNewer)
	require.ErrorContains(t, err, "start the newer one")
	require.Equal(t, "newer", engine.Code(err))
	err = <-waits
	require.ErrorIs(t, err, engine.ErrClosed)
	require.ErrorIs(t, err, store.ErrNewer)
	require.NoError(t, running.Close())
	require.Zero(t, f.sql("SELECT count(*) FROM tasq.processes WHERE state = 'live'"), "those that stopped left nothing")
}

// Programs continue, and can be started again, after a migration that they do not know and that only adds.
func TestAMigrationThatOnlyAddsStopsNoProgram(t *testing.T) {
	t.Parallel()
	f := fleetOn(t, pgtest.Database(t))
	w := release("1")
	running := f.open(engine.Config{}, w)
	f.sql("INSERT INTO tasq.schema_migrations (version, name, checksum, applied) VALUES (9999, 'of the future', 'x', 0)")
	started := f.open(engine.Config{}, w)
	require.Equal(t, `completed: "1: 5"`, ends(t, running, sent(t, started)))
	require.Equal(t, `completed: "1: 5"`, ends(t, started, sent(t, running)))
}
