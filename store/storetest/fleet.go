package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// RunFleet checks that an adapter keeps the rules for several stores on one database, beside those of [Run]. The function given
// makes an Opener of an empty database of its own at every call.
func RunFleet(t *testing.T, open func(t *testing.T) store.Opener) {
	for _, r := range fleetRules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			t.Log(r.sentence)
			o := shared{open(t)}
			r.check(NewWorld(t, o, 1), NewWorld(t, o, 2))
		})
	}
}

// shared opens stores beside others.
type shared struct{ store.Opener }

// Open implements store.Opener.
func (s shared) Open(ctx context.Context, o store.Options) (store.Store, error) {
	o.Shared = true
	return s.Opener.Open(ctx, o)
}

// fleetRule is one thing that two stores on one database have to do.
type fleetRule struct {
	name     string
	sentence string
	check    func(a, b *World)
}

var fleetRules = []fleetRule{
	{"tail", "Each store sees at once what the other one has acknowledged: in Load, Root, Item and Steps, and in views.", tail},
	{"expected", "An Update that appends to a tree which another store has changed fails with a StaleError that names the root case, " +
		"and nothing of it happens.", expected},
	{"refused-is-checked", "So does one that only expects a tree to be the newest, whatever else it appends.", refusedIsChecked},
	{"late", "A position that another store gave later in the same tree makes an Update stale, so positions rise in every tree.", late},
	{"settled", "A journal that is read as Settled has no entry before which one of a transaction under way can appear, and News say so.", settled},
	{"keys-race", "Of two stores that use one idempotency key at once, one is stale, also if it has looked the key up before, and finds the answer of the " +
		"other. A key that was prefetched is found as it is.", keysRace},
	{"lock", "While a root case is locked, no other store commits to it or locks it, which the error says, and what was loaded since stays the newest.", lock},
	{"removed", "A root case that another store has removed is stale, and is not found again.", removedElsewhere},
	{"replied-once", "A request that another store has replied to is stale, and is not listed any more.", repliedOnce},
	{"take", "A job that a store offers is taken by one store, once, of the definitions and queues that it names, the most urgent first; " +
		"other jobs stay with the store that made them.", takeOnce},
	{"aging", "With TakeFilter.Aging, the job that is due first after the head start of its priority is taken first, also one of the lowest.", takeAged},
	{"leave", "What a store holds is free when it is closed.", leaveFree},
	{"waiting", "A store counts the jobs of a queue that wait and that it does not hold, up to a number: not its own, and none that runs.", waitingElsewhere},
	{"overdue", "A store names the live jobs that it holds and that were due before a time, the earliest first, and no others.", overdueJobs},
	{"fenced", "A store that was declared dead commits nothing; it gets that error once, and goes on under a fresh number.", fencedStore},
	{"adopt", "What a store held that was killed is free after others have looked for it, and is taken with the state that it had. " +
		"The next look is soon if it held what is due.", adoptDead},
	{"news", "A Tick names the root cases that have changed, the end of the journal, and what is set.", newsOfTick},
}

// shared is the transaction as one of a store that is shared.
func (b *Batch) shared() store.SharedTx {
	b.T.Helper()
	tx, ok := b.Tx.(store.SharedTx)
	require.True(b.T, ok, "the transaction is no store.SharedTx")
	return tx
}

// requireStale demands an error that names exactly the root cases given.
func requireStale(w *World, err error, roots ...workitem.CaseID) {
	w.T.Helper()
	var stale *store.StaleError
	require.True(w.T, errors.As(err, &stale), "the error is %v, and not a StaleError", err)
	require.ErrorIs(w.T, err, store.ErrConflict)
	require.Equal(w.T, roots, stale.Roots)
}

// agree demands that both stores show the same, with all that either has acknowledged.
func agree(a, b *World) {
	a.T.Helper()
	n := len(a.Acknowledged) + len(b.Acknowledged)
	for _, w := range []*World{a, b} {
		w.Resume()
		require.Len(w.T, w.Want.Entries, n, "entries")
		w.Check()
		clear(w.trees)
	}
}

func tail(a, b *World) {
	var id workitem.CaseID
	a.Update(func(b *Batch) { id = b.Start(`1`) })
	agree(a, b)
	for i := range 4 {
		w, other := a, b
		if i%2 == 0 {
			w, other = b, a
		}
		var last int64
		w.Update(func(b *Batch) {
			b.Send(id, id, `1`, nil)
			last = b.entries[0].Seq
		})
		other.Update(func(b *Batch) {
			tree, err := b.Tx.Load(context.Background(), id)
			require.NoError(b.T, err)
			require.Equal(b.T, last, tree.Case(id).LastSeq)
			require.Equal(b.T, i+1, tree.Case(id).Mail.Len())
			for it := range tree.Case(id).Items.All() {
				root, err := b.Tx.Root(context.Background(), it.ID)
				require.NoError(b.T, err)
				require.Equal(b.T, id, root)
				_, err = b.Tx.Item(context.Background(), it.ID)
				require.NoError(b.T, err)
			}
		})
		agree(a, b)
	}
}

// two starts two cases, which both worlds know.
func two(a, b *World) (first, second workitem.CaseID) {
	a.Update(func(b *Batch) { first, second = b.Start(`1`), b.Start(`2`) })
	agree(a, b)
	for _, w := range []*World{a, b} {
		w.Update(func(b *Batch) { b.tree(first); b.tree(second) })
	}
	return first, second
}

func expected(a, b *World) {
	id, other := two(a, b)
	b.Update(func(b *Batch) { b.Send(id, id, `1`, nil) })
	requireStale(a, a.TryUpdate(func(b *Batch) error { // its tree is the one before
		b.Start(`3`)
		b.Send(other, other, `1`, nil)
		b.Send(id, id, `2`, nil)
		return nil
	}), id)
	agree(a, b)
	requireStale(a, a.TryUpdate(func(mine *Batch) error { // the other store commits while this one is at work
		mine.Send(id, id, `3`, nil)
		b.Update(func(b *Batch) { b.Send(id, id, `4`, nil) })
		return nil
	}), id)
	agree(a, b)
	a.Update(func(b *Batch) { b.Send(id, id, `5`, nil) })
	agree(a, b)
}

func refusedIsChecked(a, b *World) {
	id, other := two(a, b)
	look := func(appends bool) error {
		return a.TryUpdate(func(b *Batch) error {
			b.shared().Expect(b.tree(id))
			if appends {
				b.Send(other, other, `1`, nil)
			}
			return nil
		})
	}
	require.NoError(a.T, look(false))
	require.NoError(a.T, look(true))
	b.Update(func(b *Batch) { b.Send(id, id, `1`, nil) })
	requireStale(a, look(false), id)
	requireStale(a, look(true), id)
	agree(a, b)
	require.NoError(a.T, look(true))
	agree(a, b)
}

func late(a, b *World) {
	id, other := two(a, b)
	err := a.TryUpdate(func(mine *Batch) error {
		mine.Send(other, other, `1`, nil)
		b.Update(func(b *Batch) { b.Send(id, id, `1`, nil) })
		delete(mine.trees, id)
		mine.Send(id, id, `2`, nil)
		return nil
	})
	requireStale(a, err, id)
	agree(a, b)
}

func settled(a, b *World) {
	two(a, b)
	positions := func() (all []int64) {
		b.View(func(ctx context.Context, r store.Reader) {
			entries, err := r.Journal(ctx, store.JournalFilter{Settled: true})
			require.NoError(b.T, err)
			for _, e := range entries {
				all = append(all, e.Seq)
			}
		})
		return all
	}
	var early, late int64
	a.Update(func(mine *Batch) {
		mine.Start(`3`)
		early = mine.entries[0].Seq
		b.Update(func(other *Batch) {
			other.Start(`4`)
			late = other.entries[0].Seq
		})
		require.Less(b.T, early, late)
		require.NotContains(b.T, positions(), late, "an entry can appear before it")
		a.beat() // lest b declare it dead on a slow machine
		news, err := b.fleet().Tick(context.Background(), store.EngineState{Busy: true, Clock: b.clock})
		require.NoError(b.T, err)
		require.False(b.T, news.Settled)
	})
	agree(a, b)
	b.awaitNews(func(n store.News) bool { return n.Settled && n.Head == late })
	n := len(a.Acknowledged) + len(b.Acknowledged)
	require.Eventually(b.T, func() bool { return len(positions()) == n }, time.Minute, 100*time.Millisecond)
	require.Equal(b.T, []int64{early, late}, positions()[n-2:])
}

func keysRace(a, b *World) {
	id, other := two(a, b)
	prefetch := func(b *Batch) {
		require.NoError(b.T, b.shared().PrefetchKeys(context.Background(), []string{"free", "once"}))
	}
	requireStale(a, a.TryUpdate(func(mine *Batch) error {
		prefetch(mine)
		_, err := mine.Tx.Answered(context.Background(), "once")
		require.ErrorIs(mine.T, err, store.ErrNotFound)
		mine.Key, mine.Answer = "once", []byte(`"a"`)
		mine.Send(id, id, `1`, nil)
		b.Update(func(b *Batch) {
			b.Key, b.Answer = "once", []byte(`"b"`)
			b.Send(other, other, `1`, nil)
		})
		return nil
	}))
	a.Update(func(b *Batch) {
		prefetch(b)
		e, err := b.Tx.Answered(context.Background(), "once")
		require.NoError(b.T, err)
		require.JSONEq(b.T, `"b"`, string(e.Answer))
		_, err = b.Tx.Answered(context.Background(), "free")
		require.ErrorIs(b.T, err, store.ErrNotFound)
		b.Key, b.Answer = "free", []byte(`"a"`)
		b.Send(id, id, `1`, nil)
		e, err = b.Tx.Answered(context.Background(), "free")
		require.NoError(b.T, err, "it was used since")
		require.JSONEq(b.T, `"a"`, string(e.Answer))
	})
	agree(a, b)
}

func lock(a, b *World) {
	id, _ := two(a, b)
	b.Update(func(b *Batch) { b.Send(id, id, `1`, nil) })
	a.Update(func(mine *Batch) {
		last, err := mine.shared().LockCase(context.Background(), id, true)
		require.NoError(mine.T, err)
		require.NotEqual(mine.T, mine.tree(id).Case(id).LastSeq, last, "the tree in memory is not the newest")
		delete(mine.trees, id)
		require.Equal(mine.T, mine.tree(id).Case(id).LastSeq, last)
		requireLocked(b, b.TryUpdate(func(b *Batch) error {
			b.Send(id, id, `2`, nil)
			return nil
		}), id)
		requireLocked(b, b.TryUpdate(func(b *Batch) error {
			_, err := b.shared().LockCase(context.Background(), id, true)
			return err
		}), id)
		b.Update(func(b *Batch) {
			_, err := b.shared().LockCase(context.Background(), id, false)
			requireLocked(b.World, err, id)
			b.Start(`1`) // it goes on
		})
		mine.Send(id, id, `3`, nil)
		_, err = mine.shared().LockCase(context.Background(), workitem.CaseID{1}, true)
		require.ErrorIs(mine.T, err, store.ErrNotFound)
	})
	agree(a, b)
}

// requireLocked demands the error of a root case that another transaction has locked.
func requireLocked(w *World, err error, root workitem.CaseID) {
	w.T.Helper()
	requireStale(w, err, root)
	require.ErrorIs(w.T, err, store.ErrUnavailable)
	var stale *store.StaleError
	require.True(w.T, errors.As(err, &stale) && stale.Locked, "%v", err)
}

func removedElsewhere(a, b *World) {
	var id workitem.CaseID
	b.Update(func(b *Batch) { id = b.ended("") })
	a.Resume()
	requireStale(a, a.TryUpdate(func(mine *Batch) error {
		mine.shared().Expect(mine.tree(id))
		b.Update(func(b *Batch) { b.Remove(id) })
		return nil
	}), id)
	a.Update(func(b *Batch) {
		_, err := b.Tx.Load(context.Background(), id)
		require.ErrorIs(b.T, err, store.ErrNotFound)
		_, err = b.shared().LockCase(context.Background(), id, true)
		require.ErrorIs(b.T, err, store.ErrNotFound)
	})
	a.Resume()
	a.Check()
}

func repliedOnce(a, b *World) {
	inbox, ok := a.Opener.(shared).Opener.(interface {
		Leave(ctx context.Context, command json.RawMessage) error
	})
	if !ok {
		return
	}
	id, _ := two(a, b)
	ctx := context.Background()
	require.NoError(a.T, inbox.Leave(ctx, json.RawMessage(`1`)))
	reply := func(b *Batch) {
		left, err := b.Tx.Requests(ctx, 0, 1)
		require.NoError(b.T, err)
		require.Len(b.T, left, 1)
		require.NoError(b.T, b.Tx.Reply(ctx, left[0].ID, store.Answer{Code: "done"}))
	}
	requireStale(a, a.TryUpdate(func(mine *Batch) error {
		mine.Send(id, id, `1`, nil)
		reply(mine)
		b.Update(reply)
		return nil
	}))
	a.Update(func(b *Batch) {
		left, err := b.Tx.Requests(ctx, 0, 1)
		require.NoError(b.T, err)
		require.Empty(b.T, left)
	})
	agree(a, b)
}
