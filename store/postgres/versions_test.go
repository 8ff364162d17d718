package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

// laterProgram is the option of a program that has one more migration.
func laterProgram(t *testing.T, statements string) postgres.Option {
	t.Helper()
	files := fstest.MapFS{}
	known, err := fs.Glob(postgres.Migrations(), "schema/*.sql")
	require.NoError(t, err)
	for _, name := range known {
		text, err := fs.ReadFile(postgres.Migrations(), name)
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: text}
	}
	files[fmt.Sprintf("schema/%04d_later.sql", len(known)+1)] = &fstest.MapFile{Data: []byte(statements)}
	return postgres.SchemaFiles(files)
}

// set writes something in a transaction of its own.
func set(t *testing.T, s store.Store) error {
	t.Helper()
	return s.Update(t.Context(), func(tx store.Tx) error {
		return tx.Set(t.Context(), "limit/a", json.RawMessage(`{"limit":{"name":"a","n":1}}`))
	})
}

// Programs that do not know a migration which only adds continue, keep their number, and can be started again.
func TestAMigrationThatOnlyAddsStopsNoProgram(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	open := func(readOnly bool, opts ...postgres.Option) store.Store {
		t.Helper()
		s, err := sharedOpener{postgres.Open(dsn, opts...)}.Open(t.Context(), store.Options{ReadOnly: readOnly})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	old := open(false)
	first := number(t, dsn, "SELECT id FROM tasq.processes")
	newer := open(false, laterProgram(t, "CREATE TABLE later (a int)"))
	require.NoError(t, set(t, old))
	require.NoError(t, set(t, newer))
	require.Equal(t, first, number(t, dsn, "SELECT min(id) FROM tasq.processes"))
	for _, s := range []store.Store{open(false), open(false, postgres.NoMigrate())} {
		require.NoError(t, set(t, s))
	}
	require.NoError(t, open(true).View(t.Context(), func(r store.Reader) error {
		_, err := r.Settings(t.Context())
		return err
	}))
}

// A deployment migrates before it starts the new programs: no engine joins for that, and those of the older program continue. A reader of the new
// program says what is missing.
func TestMigrationBesideEnginesOfTheOlderProgram(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	old, err := sharedOpener{postgres.Open(dsn)}.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	defer old.Close()
	newer := postgres.Open(dsn, laterProgram(t, "CREATE TABLE later (a int)"))
	version := number(t, dsn, "SELECT max(version) FROM tasq.schema_migrations")

	_, err = newer.Open(t.Context(), store.Options{ReadOnly: true})
	var older *store.OlderError
	require.ErrorAs(t, err, &older)
	require.Equal(t, []store.Migration{{Version: int(version) + 1, Name: "later"}}, older.Pending)

	for range 2 { // the second time nothing is missing
		require.NoError(t, newer.(interface {
			Migrate(ctx context.Context) error
		}).Migrate(t.Context()))
		require.Equal(t, version+1, number(t, dsn, "SELECT max(version) FROM tasq.schema_migrations"))
		require.EqualValues(t, 1, number(t, dsn, "SELECT count(*) FROM tasq.processes"))
		require.EqualValues(t, 0, number(t, dsn, "SELECT count(*) FROM tasq.later"))
	}
	require.NoError(t, set(t, old))
}

// A program that cannot run with a migration stops at its next commit or heartbeat, and is refused when it is started again. Both errors say what
// to do. Programs that can run with it continue.
func TestAMigrationStopsTheProgramsThatCannotRunWithIt(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	open := func(opts ...postgres.Option) (store.Store, error) {
		return sharedOpener{postgres.Open(dsn, opts...)}.Open(t.Context(), store.Options{})
	}
	commits, beats, err := (store.Store)(nil), (store.Store)(nil), error(nil)
	for _, s := range []*store.Store{&commits, &beats} {
		*s, err = open()
		require.NoError(t, err)
		defer (*s).Close()
	}
	version := number(t, dsn, "SELECT max(version) FROM tasq.schema_migrations")
	later := laterProgram(t, fmt.Sprintf("-- oldest program: %d\nALTER TABLE limits RENAME TO shares", version+1))
	newer, err := open(later)
	require.NoError(t, err)
	defer newer.Close()

	err = set(t, commits)
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorIs(t, err, store.ErrNewer)
	require.ErrorContains(t, err, "a newer program has migrated it while this one had it open: everything that was acknowledged is there; stop this program, and start the newer one")
	require.ErrorContains(t, err, fmt.Sprintf("it has version %d, on which programs run that know version %d, and this program knows up to %d", version+1, version+1, version))
	require.Equal(t, err, set(t, commits))
	require.ErrorIs(t, commits.View(t.Context(), func(store.Reader) error { return nil }), store.ErrLost)
	_, err = beats.(store.Fleet).Tick(t.Context(), store.EngineState{})
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorIs(t, err, store.ErrNewer)
	require.ErrorIs(t, set(t, beats), store.ErrLost)

	_, err = open()
	require.ErrorIs(t, err, store.ErrNewer)
	require.ErrorContains(t, err, "use a newer program")
	_, err = postgres.Open(dsn).Open(t.Context(), store.Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrNewer)
	require.NoError(t, set(t, newer))
	require.Equal(t, int64(1), number(t, dsn, "SELECT count(*) FROM tasq.processes"))
}

// An engine that has the database alone does not notice a migration by its lock: it stops in the same way.
func TestAMigrationStopsAnEngineThatIsAlone(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	alone, err := postgres.Open(dsn, postgres.Alone()).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	defer alone.Close()
	version := number(t, dsn, "SELECT max(version) FROM tasq.schema_migrations")
	_, err = postgres.Open(dsn, laterProgram(t, fmt.Sprintf("-- oldest program: %d\n", version+1))).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	err = set(t, alone)
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorIs(t, err, store.ErrNewer)
}

// A program does not write what another one that is running cannot read.
func TestAProgramDoesNotWriteWhatAnotherCannotRead(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	old, err := sharedOpener{postgres.Open(dsn)}.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	execOn(t, dsn, "UPDATE tasq.processes SET reads = 0, name = 'old/1'")
	_, err = sharedOpener{postgres.Open(dsn)}.Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorContains(t, err, "(old/1) belongs to an older program, which reads journal entries up to format 0, and this program writes format 1: stop that one first")
	require.NoError(t, old.Close())
	next, err := sharedOpener{postgres.Open(dsn)}.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, next.Close())
}
