package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/internal/transfer"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

var notes = domain.Collection[string, string]{Name: "notes"}

// source is a store with cases of many shapes and a record.
func source(t *testing.T, o store.Opener) *storetest.World {
	t.Helper()
	w := storetest.NewWorld(t, o, 1)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		w.Update(func(b *storetest.Batch) {
			for range 4 {
				b.Random(rng)
			}
		})
	}
	require.NoError(t, w.Store.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(notes.Put(t.Context(), tx.DB(), "a", "b"), tx.Set(t.Context(), "queue/slow", json.RawMessage(`{"paused":true}`)))
	}))
	return w
}

func open(t *testing.T, o store.Opener) store.Store {
	t.Helper()
	s, err := o.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// holds checks that a database has the journal of a world but for the positions, and tables that follow from it.
func holds(t *testing.T, w *storetest.World, o store.Opener) {
	t.Helper()
	there := storetest.NewWorld(t, o, 1)
	there.Resume()
	there.Check()
	require.Len(t, there.Want.Entries, len(w.Want.Entries))
	for i, e := range there.Want.Entries {
		want, got := *w.Want.Entries[i], *e
		want.Seq, want.Prev, got.Seq, got.Prev = 0, 0, 0, 0
		require.Equal(t, want, got, "entry %d", i)
	}
	there.View(func(ctx context.Context, r store.Reader) {
		note, err := notes.Get(ctx, r.DB(), "a")
		require.NoError(t, err)
		require.Equal(t, "b", note)
		settings, err := r.Settings(ctx)
		require.NoError(t, err)
		require.Equal(t, []store.Setting{{Name: "queue/slow", Value: json.RawMessage(`{"paused":true}`)}}, settings)
	})
	require.NoError(t, there.Store.Close())
}

// copied copies into an empty database, and closes it.
func copied(t *testing.T, from store.Store, o store.Opener) transfer.Progress {
	t.Helper()
	to := open(t, o)
	p, err := transfer.Copy(t.Context(), from, to, nil)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return p
}

func TestFromAFileToAServerAndBack(t *testing.T) {
	server, file := postgres.Open(pgtest.Database(t)), sqlite.File(filepath.Join(t.TempDir(), "b.db"))
	w := source(t, sqlite.File(filepath.Join(t.TempDir(), "a.db")))
	p := copied(t, w.Store, server)
	require.Equal(t, p.Of, p.Entries)
	require.EqualValues(t, len(w.Want.Entries), p.Entries)
	holds(t, w, server)
	copied(t, open(t, server), file)
	holds(t, w, file)
}

// spread is a store with cases that were all started before the first of them continued.
func spread(t *testing.T, cases int) *storetest.World {
	t.Helper()
	const each = 100
	w := storetest.NewWorld(t, sqlite.Memory(), 1)
	roots := make([]workitem.CaseID, cases)
	for from := 0; from < cases; from += each {
		w.Update(func(b *storetest.Batch) {
			for i := range each {
				roots[from+i] = b.Start(`1`)
			}
		})
	}
	for from := 0; from < cases; from += each {
		w.Update(func(b *storetest.Batch) {
			for _, root := range roots[from : from+each] {
				b.Claim(root, root)
			}
		})
	}
	return w
}

// shadow makes tables of the user that come first in the search path and have the names of Tasq's.
func shadow(t *testing.T, dsn string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "CREATE TABLE public.jobs (id int); CREATE TABLE public.cases (id int); CREATE TABLE public.records (id int); "+
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public', current_database()); END $$")
	require.NoError(t, errors.Join(err, c.Close(t.Context())))
}

// Through the network, a statement for each case would take most of the time of a copy.
func TestTheStatementsOfACopyAreThoseOfItsBatches(t *testing.T) {
	w := spread(t, 1100)
	dsn := pgtest.Database(t)
	shadow(t, dsn)
	proxy, through := pgproxy.New(t, dsn)
	server := postgres.Open(through)
	var statements atomic.Int64
	proxy.Decide(func(string) pgproxy.Fault { statements.Add(1); return "" })
	count := func(f func()) int {
		before := statements.Load()
		f()
		return int(statements.Load() - before)
	}
	batches := len(w.Want.Entries)/300 + 1
	require.Less(t, count(func() { copied(t, w.Store, server) }), 100+30*batches, "to a server")
	from := open(t, server)
	require.Less(t, count(func() { copied(t, from, sqlite.Memory()) }), 30+10*batches, "from a server")
	require.NoError(t, from.View(t.Context(), func(r store.Reader) error {
		analyzed := 0
		err := r.DB().QueryRowContext(t.Context(), "SELECT count(DISTINCT tablename) FROM pg_stats WHERE schemaname = 'tasq' "+
			"AND tablename IN ('cases', 'work_items', 'jobs', 'journal')").Scan(&analyzed)
		require.Equal(t, 4, analyzed, "tables whose content the planner knows")
		return err
	}))
}

var errCut = errors.New("cut")

// cut is a store whose updates fail from one on.
type cut struct {
	store.Store
	left int
}

func (c *cut) Update(ctx context.Context, f func(store.Tx) error) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.Store.Update(ctx, f)
}

func TestAnInterruptedCopyGoesOn(t *testing.T) {
	w := source(t, sqlite.Memory())
	cuts := 0
	for ; ; cuts++ {
		o := sqlite.Memory()
		first := &cut{open(t, o), cuts}
		_, err := transfer.Copy(t.Context(), w.Store, first, nil)
		if err == nil {
			break // it was not interrupted
		}
		require.ErrorIs(t, err, errCut)
		require.NoError(t, first.Store.(store.Killer).Kill())
		require.EqualValues(t, len(w.Want.Entries), copied(t, w.Store, o).Entries)
		holds(t, w, o)
	}
	require.Greater(t, cuts, 3, "batches of entries, and the records")
}

func TestATargetWithOtherCasesIsRefused(t *testing.T) {
	w, other := source(t, sqlite.Memory()), storetest.NewWorld(t, sqlite.Memory(), 2)
	other.Update(func(b *storetest.Batch) { b.Start(`1`) })
	_, err := transfer.Copy(t.Context(), w.Store, other.Store, nil)
	require.ErrorIs(t, err, transfer.ErrNotEmpty)
	other.Check()
}

func TestPendingCommandsAreNotLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	w := source(t, sqlite.File(path))
	require.NoError(t, sqlite.Leave(t.Context(), path, []byte(`{}`)))
	_, err := transfer.Copy(t.Context(), w.Store, open(t, sqlite.Memory()), nil)
	require.ErrorIs(t, err, transfer.ErrRequests)
}
