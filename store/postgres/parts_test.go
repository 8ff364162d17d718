package postgres_test

import (
	"errors"
	"strings"
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

// The rules of a store hold where all that can be is sent in parts. The nightly form has all; the others have those of what is written and undone, as that a filter
// selects what it says does not depend on how the rows were sent.
func TestStoreInParts(t *testing.T) {
	t.Parallel()
	only := []string{"all-or-nothing", "chained", "load", "remove-undone", "keys", "savepoint", "user-sql", "requests", "limits"}
	if testsize.Nightly() {
		only = nil
	}
	storetest.Run(t, func(t *testing.T) store.Opener { return postgres.Open(prepared.Database(t), postgres.Parts(1, 1)) }, only...)
}

func TestFleetInParts(t *testing.T) {
	t.Parallel()
	storetest.RunFleet(t, func(t *testing.T) store.Opener {
		dsn := prepared.Database(t)
		return fenced{postgres.Open(dsn, postgres.Parts(1, 1)), dsn}
	})
}

// parted is a world whose transactions are sent in parts, with two articles, of which one is under review.
type parted struct {
	*storetest.World
	p          *pgproxy.Proxy
	dsn        string
	id, review workitem.CaseID
	appending  chan struct{} // gets a value when entries are sent
}

func newParted(t *testing.T) *parted {
	dsn := prepared.Database(t)
	p, through := pgproxy.New(t, dsn)
	w := &parted{World: storetest.NewWorld(t, sharedOpener{postgres.Open(through, postgres.Parts(1, 1))}, 1), p: p, dsn: dsn,
		appending: make(chan struct{}, 100)}
	w.Update(func(b *storetest.Batch) {
		w.id, w.review = b.Start(`1`), b.Start(`2`)
		b.Claim(w.review, w.review)
		b.Complete(w.review, w.review, `"done"`, false)
	})
	w.decide("")
	return w
}

// decide has a fault happen when entries are sent.
func (w *parted) decide(f pgproxy.Fault) {
	w.p.Decide(func(statement string) pgproxy.Fault {
		if !strings.HasPrefix(statement, "INSERT INTO tasq.journal") {
			return ""
		}
		w.appending <- struct{}{}
		return f
	})
}

// end ends the article under review, as a command of a batch, and waits until that is sent.
func (w *parted) end(b *storetest.Batch) {
	require.NoError(w.T, b.Tx.Savepoint(w.T.Context(), func() error {
		b.Claim(w.review, w.review)
		b.Complete(w.review, w.review, `"done"`, false)
		return nil
	}))
	select {
	case <-w.appending:
	case <-time.After(time.Minute):
		w.T.Fatal("nothing is sent")
	}
}

// What has ended is sent while the commands behind it run. They see it, and all is done together, or not at all.
func TestEndedTreeIsSentBeforeCommit(t *testing.T) {
	t.Parallel()
	w := newParted(t)
	broken := errors.New("a later command")
	batch := func(b *storetest.Batch) {
		w.end(b)
		require.ErrorIs(t, b.Tx.Savepoint(t.Context(), func() error {
			b.Send(w.id, w.id, `0`, nil)
			return broken
		}), broken)
	}
	require.ErrorIs(t, w.TryUpdate(func(b *storetest.Batch) error {
		batch(b)
		return broken
	}), broken)
	w.Check()
	w.Update(func(b *storetest.Batch) {
		w.end(b)
		tree, err := b.Tx.Load(t.Context(), w.review)
		require.NoError(t, err)
		require.True(t, tree.Ended())
		b.Send(w.id, w.id, `1`, nil)
	})
	w.Check()
	w.Crash()
	w.Check()
}

// A tree that has ended and was sent can be removed by a later command.
func TestTreeSentEarlyCanBeRemoved(t *testing.T) {
	t.Parallel()
	w := newParted(t)
	w.Update(func(b *storetest.Batch) {
		w.end(b)
		b.Remove(w.review)
	})
	w.Check()
}

// A part that fails undoes the transaction. The command that meets it gets an error that says it may be repeated, and the one that commits which
// case was stale.
func TestAPartFails(t *testing.T) {
	t.Parallel()
	load := func(w *parted, b *storetest.Batch) error {
		_, err := b.Tx.Load(w.T.Context(), w.id)
		return err
	}
	t.Run("met by a command", func(t *testing.T) {
		t.Parallel()
		w := newParted(t)
		execOn(t, w.dsn, "UPDATE tasq.cases SET last_seq = last_seq + 1 WHERE root = '"+w.review.String()+"'")
		err := w.TryUpdate(func(b *storetest.Batch) error {
			w.end(b)
			return load(w, b)
		})
		require.ErrorIs(t, err, store.ErrUndone)
		require.ErrorIs(t, err, store.ErrConflict)
		execOn(t, w.dsn, "UPDATE tasq.cases SET last_seq = last_seq - 1 WHERE root = '"+w.review.String()+"'")
		w.Check()
	})
	t.Run("met by the commit", func(t *testing.T) {
		t.Parallel()
		w := newParted(t)
		execOn(t, w.dsn, "UPDATE tasq.cases SET last_seq = last_seq + 1 WHERE root = '"+w.review.String()+"'")
		var stale *store.StaleError
		require.ErrorAs(t, w.TryUpdate(func(b *storetest.Batch) error {
			w.end(b)
			b.Send(w.id, w.id, `1`, nil)
			return nil
		}), &stale)
		require.Equal(t, []workitem.CaseID{w.review}, stale.Roots)
		execOn(t, w.dsn, "UPDATE tasq.cases SET last_seq = last_seq - 1 WHERE root = '"+w.review.String()+"'")
		w.Check()
	})
	for _, fault := range []pgproxy.Fault{pgproxy.Request, pgproxy.Reply} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			w := newParted(t)
			w.decide(fault)
			err := w.TryUpdate(func(b *storetest.Batch) error {
				w.end(b)
				return load(w, b)
			})
			require.ErrorIs(t, err, store.ErrUndone)
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorIs(t, w.TryUpdate(func(b *storetest.Batch) error {
				w.end(b)
				return nil
			}), store.ErrUnavailable)
			w.decide("")
			w.Check()
			w.Update(func(b *storetest.Batch) { w.end(b) })
			w.Check()
		})
	}
}

// The engine knows the revision behind which it appends, unless another program has appended: then the server finds the case changed.
func TestRevisionsAreThoseOfTheJournal(t *testing.T) {
	t.Parallel()
	w := newParted(t)
	for range 3 {
		w.Update(func(b *storetest.Batch) {
			b.Send(w.id, w.id, `1`, nil)
			b.Send(w.id, w.id, `2`, nil)
		})
	}
	w.Crash() // what it knew is gone with it
	w.Update(func(b *storetest.Batch) { b.Send(w.id, w.id, `3`, nil) })
	w.Update(func(b *storetest.Batch) { b.Send(w.id, w.id, `4`, nil) })
	require.Equal(t, int64(9), number(t, w.dsn, "SELECT max(rev) FROM tasq.journal WHERE root = '"+w.id.String()+"'"))
	require.Equal(t, int64(9), number(t, w.dsn, "SELECT count(*) FROM tasq.journal WHERE root = '"+w.id.String()+"'"))
	execOn(t, w.dsn, "DELETE FROM tasq.journal WHERE root = '"+w.id.String()+"'; DELETE FROM tasq.cases WHERE root = '"+w.id.String()+"'")
	var stale *store.StaleError
	require.ErrorAs(t, w.TryUpdate(func(b *storetest.Batch) error {
		b.Send(w.id, w.id, `5`, nil)
		return nil
	}), &stale)
	require.Equal(t, []workitem.CaseID{w.id}, stale.Roots)
	require.Zero(t, number(t, w.dsn, "SELECT count(*) FROM tasq.journal WHERE root = '"+w.id.String()+"'"))
}

// A COPY whose connection is lost, or that meets a row of another program, undoes the transaction.
func TestACopyFails(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"journal", "cases", "work_items", "jobs"} {
		for _, fault := range []pgproxy.Fault{pgproxy.Request, pgproxy.Reply} {
			t.Run(table+" "+string(fault), func(t *testing.T) {
				t.Parallel()
				w := newParted(t)
				w.p.Decide(func(statement string) pgproxy.Fault {
					if strings.HasPrefix(statement, "COPY tasq."+table+" ") {
						return fault
					}
					return ""
				})
				require.ErrorIs(t, w.TryUpdate(func(b *storetest.Batch) error {
					b.Start(`3`)
					return nil
				}), store.ErrUnavailable)
				require.NotZero(t, w.p.Met())
				w.decide("")
				w.Check()
				w.Update(func(b *storetest.Batch) { b.Start(`4`) })
				w.Check()
			})
		}
	}
	t.Run("journal has the row", func(t *testing.T) {
		t.Parallel()
		w := newParted(t)
		require.ErrorIs(t, w.TryUpdate(func(b *storetest.Batch) error {
			execOn(t, w.dsn, "INSERT INTO tasq.journal (root, rev, seq, process, format, at, command, actor, events) VALUES ('"+
				b.Start(`3`).String()+"', 1, 1, 0, 1, 0, '', '', '[]')")
			return nil
		}), store.ErrConflict)
		require.Equal(t, int64(1), number(t, w.dsn, "SELECT count(*) FROM tasq.journal WHERE seq = 1"))
		execOn(t, w.dsn, "DELETE FROM tasq.journal WHERE seq = 1")
		w.Check()
	})
}
