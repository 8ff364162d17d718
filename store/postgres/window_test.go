package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// never is a window that is written only when something reads the tables, or when it is full.
var never = postgres.WindowOf(time.Hour)

// The rules of a store hold with rows that are behind their commits. The nightly form has all of them: that a filter selects what it says does not
// depend on when the rows were written.
func TestStoreWithAWindow(t *testing.T) {
	t.Parallel()
	only := []string{"all-or-nothing", "chained", "load", "children", "concurrent", "remove-undone", "keys", "savepoint", "user-sql", "durable", "history", "find", "present", "remove", "key-holders", "key-starts", "read-only"}
	if testsize.Nightly() {
		only = nil
	}
	storetest.Run(t, func(t *testing.T) store.Opener { return postgres.Open(prepared.Database(t), never) }, only...)
}

func TestFleetWithAWindow(t *testing.T) {
	t.Parallel()
	storetest.RunFleet(t, func(t *testing.T) store.Opener {
		dsn := prepared.Database(t)
		return fenced{postgres.Open(dsn, postgres.Window(20*time.Millisecond)), dsn}
	})
}

// windowed is a world with entries that are in no table.
type windowed struct {
	*storetest.World
	dsn string
	rng *rand.Rand
}

func newWindowed(t *testing.T) *windowed {
	w := newAged(t, never)
	w.fill()
	return w
}

// newAged has a window of an age. On a slow machine it may be written at any time.
func newAged(t *testing.T, age postgres.Option) *windowed {
	dsn := prepared.Database(t)
	w := &windowed{storetest.NewWorld(t, sharedOpener{postgres.Open(dsn, age)}, 1), dsn, rand.New(rand.NewPCG(1, 2))}
	w.start()
	return w
}

func (w *windowed) start() {
	for range 5 {
		w.Update(func(b *storetest.Batch) {
			b.Start(`1`)
			b.Random(w.rng)
		})
	}
}

// fill commits entries whose rows are not written.
func (w *windowed) fill() {
	w.T.Helper()
	before := w.behind()
	w.start()
	require.Greater(w.T, w.behind(), before+4, "the rows are written in the commit")
}

// behind returns how many root cases have no row.
func (w *windowed) behind() int64 {
	return number(w.T.(*testing.T), w.dsn, "SELECT (SELECT count(DISTINCT root) FROM tasq.journal) - (SELECT count(*) FROM tasq.cases WHERE id = root)")
}

// complete requires that the tables have everything, before anything reads them through the store.
func (w *windowed) complete() {
	w.T.Helper()
	require.Zero(w.T, w.behind())
	w.Check()
}

func TestWindowIsWrittenAfterItsAge(t *testing.T) {
	t.Parallel()
	w := newAged(t, postgres.WindowOf(100*time.Millisecond))
	require.Eventually(t, func() bool { return w.behind() == 0 }, 10*time.Second, 5*time.Millisecond)
	w.Check()
}

func TestWindowIsWrittenAsTheStoreIsClosed(t *testing.T) {
	t.Parallel()
	w := newWindowed(t)
	require.NoError(t, w.Store.Close())
	require.Zero(t, w.behind())
	w.Open()
	w.complete()
}

// What a killed engine had not written is written by the next one, from the journal; also of cases that had rows.
func TestWindowOfAKilledEngine(t *testing.T) {
	t.Parallel()
	w := newWindowed(t)
	for range 3 {
		w.Check() // writes it
		w.fill()
		w.Crash()
		w.complete()
		w.fill()
	}
	require.Zero(t, number(t, w.dsn, "SELECT count(*) FROM tasq.jobs j WHERE holder NOT IN (SELECT id FROM tasq.processes) AND holder > 0 AND state = 'pending'"))
}

// An engine that joins ends the window, and reads tables that have everything.
func TestAnEngineThatJoinsEndsTheWindow(t *testing.T) {
	t.Parallel()
	w := newAged(t, postgres.WindowOf(300*time.Millisecond))
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	other, err := sharedOpener{postgres.Open(w.dsn)}.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.Zero(t, w.behind())
	require.Zero(t, number(t, w.dsn, "SELECT count(*) FROM tasq.processes WHERE windowed"))
	// The first commit learns of the other engine, and runs again with its rows.
	require.ErrorIs(t, w.TryUpdate(func(b *storetest.Batch) error {
		b.Start(`2`)
		return nil
	}), store.ErrConflict)
	w.Update(func(b *storetest.Batch) { b.Start(`2`) })
	require.Zero(t, w.behind())
	require.NoError(t, other.View(t.Context(), func(r store.Reader) error {
		w.Want.Check(t.Context(), t, r)
		return nil
	}))
	require.NoError(t, other.Close())
}

// An engine that was declared dead joins again beside one that has begun a window meanwhile, and waits for it.
func TestAFencedEngineJoinsBesideAWindow(t *testing.T) {
	t.Parallel()
	w := newAged(t, postgres.WindowOf(300*time.Millisecond))
	other := storetest.NewWorld(t, sharedOpener{postgres.Open(w.dsn)}, 2)
	execOn(t, w.dsn, "DELETE FROM tasq.processes WHERE id = (SELECT max(id) FROM tasq.processes)")
	require.Eventually(t, func() bool { // it tries once a second
		_, err := w.Store.(store.Fleet).Tick(t.Context(), store.EngineState{Clock: time.Now()})
		require.NoError(t, err)
		_ = w.TryUpdate(func(b *storetest.Batch) error {
			b.Start(`1`)
			return nil
		})
		return number(t, w.dsn, "SELECT count(*) FROM tasq.processes WHERE windowed") == 1
	}, 10*time.Second, 50*time.Millisecond)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	require.ErrorIs(t, other.TryUpdate(func(b *storetest.Batch) error {
		b.Start(`2`)
		return nil
	}), store.ErrFenced)
	require.Zero(t, w.behind())
	require.Zero(t, number(t, w.dsn, "SELECT count(*) FROM tasq.processes WHERE windowed"))
}

// A reader of another process sees what was acknowledged before, also while more is committed.
func TestAReaderWaitsForTheWindow(t *testing.T) {
	t.Parallel()
	w := newAged(t, postgres.WindowOf(20*time.Millisecond))
	reader, err := postgres.Open(w.dsn).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer reader.Close()
	for range 10 {
		w.Update(func(b *storetest.Batch) { b.Random(w.rng) })
		require.NoError(t, reader.View(t.Context(), func(r store.Reader) error {
			w.Want.Check(t.Context(), t, r)
			return nil
		}))
	}
}

// A reader writes the window of an engine that was killed.
func TestAReaderAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWindowed(t)
	require.NoError(t, w.Store.(store.Killer).Kill())
	reader, err := postgres.Open(w.dsn).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, reader.View(t.Context(), func(r store.Reader) error {
		w.Want.Check(t.Context(), t, r)
		return nil
	}))
	w.Open()
	w.complete()
}

// A flush whose connection is lost is tried again, and nothing is written twice.
func TestAFlushLosesItsConnection(t *testing.T) {
	t.Parallel()
	for _, fault := range []pgproxy.Fault{pgproxy.Request, pgproxy.Reply} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			dsn := prepared.Database(t)
			p, through := pgproxy.New(t, dsn)
			w := &windowed{storetest.NewWorld(t, sharedOpener{postgres.Open(through, never)}, 1), dsn, rand.New(rand.NewPCG(3, 4))}
			for range 3 {
				w.fill()
				p.Break(fault, "UPDATE tasq.pulses SET projected")
				w.Check()
				require.NotZero(t, p.Met())
				require.Zero(t, w.behind())
			}
		})
	}
}

// After a lost connection of the writer the window has a commit of which no answer came. An engine that has the database alone writes it from the
// journal.
func TestACommitLosesItsConnectionWithAWindow(t *testing.T) {
	t.Parallel()
	for _, fault := range []pgproxy.Fault{pgproxy.Request, pgproxy.Reply} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprint(fault, ", alone ", alone), func(t *testing.T) {
				t.Parallel()
				dsn := prepared.Database(t)
				p, through := pgproxy.New(t, dsn)
				o := postgres.Open(through, never)
				if !alone {
					o = sharedOpener{o}
				}
				w := &windowed{storetest.NewWorld(t, o, 1), dsn, rand.New(rand.NewPCG(5, 6))}
				for range 3 {
					w.fill()
					p.Break(fault, "COMMIT")
					err := w.TryUpdate(func(b *storetest.Batch) error {
						b.Start(`1`)
						return nil
					})
					require.NotZero(t, p.Met())
					require.Equal(t, fault == pgproxy.Reply, err == nil, "%v", err)
					require.Equal(t, alone, w.behind() == 0)
					w.Check()
				}
			})
		}
	}
}

// Another engine that declares this one dead writes its window; what this one tries to write after that is refused.
func TestWindowOfAFencedEngine(t *testing.T) {
	t.Parallel()
	w := newWindowed(t)
	require.NoError(t, fenced{dsn: w.dsn}.Fence(t.Context()))
	require.NoError(t, w.Store.View(t.Context(), func(store.Reader) error { return nil }))
	require.Positive(t, w.behind()) // this test does not write it as another engine would
	require.ErrorIs(t, w.TryUpdate(func(b *storetest.Batch) error {
		b.Start(`2`)
		return nil
	}), store.ErrFenced)
	w.complete()
	w.Update(func(b *storetest.Batch) { b.Start(`2`) })
	w.Check()
}

// The user's SQL sees what was committed, and the rows of its own commit are not behind.
func TestUsersSQLWithAWindow(t *testing.T) {
	t.Parallel()
	w := newWindowed(t)
	w.Update(func(b *storetest.Batch) {
		var n int64
		require.NoError(t, b.Tx.DB().QueryRowContext(context.Background(), "SELECT count(*) FROM tasq.cases WHERE id = root").Scan(&n))
		require.Equal(t, int64(len(w.Want.Roots)), n)
		b.Start(`3`)
	})
	w.complete()
	w.fill()
	w.Crash() // what the commit with SQL has written is not written again
	w.complete()
}

// A job that is only in the window can be taken.
func TestAJobOfTheWindowIsTaken(t *testing.T) {
	t.Parallel()
	w := newWindowed(t)
	fleet := w.Store.(store.Fleet)
	require.NoError(t, fleet.Announce(t.Context(), []string{"fp-article", "fp-issue"}))
	var job workitem.JobID
	w.Update(func(b *storetest.Batch) {
		id := b.Start(`1`)
		tree, err := b.Tx.Load(t.Context(), id)
		require.NoError(t, err)
		for j := range tree.Case(id).Jobs.All() {
			job = j.ID
		}
		b.Tx.(store.SharedTx).Offer(job)
	})
	taken, err := fleet.Take(t.Context(), store.TakeFilter{Max: 10})
	require.NoError(t, err)
	require.Len(t, taken, 1)
	require.Equal(t, job, taken[0].ID)
	w.Check()
}

func TestTheConnectionStringNamesTheWindow(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	for _, age := range []string{"soon", "-1s", ""} {
		_, err := postgres.Open(dsn+"&tasq_window="+age).Open(t.Context(), store.Options{})
		require.ErrorContains(t, err, "say how long, as in 20ms")
	}
	w := storetest.NewWorld(t, postgres.Open(dsn+"&tasq_window=20ms"), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	require.Equal(t, int64(1), number(t, dsn, "SELECT count(*) FROM tasq.processes WHERE windowed"))
	w.Check()
}
