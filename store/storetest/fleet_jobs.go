package storetest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// fleet is the store of a world as one of a fleet.
func (w *World) fleet() store.Fleet {
	w.T.Helper()
	f, ok := w.Store.(store.Fleet)
	require.True(w.T, ok, "the store is no store.Fleet")
	return f
}

// announce has both stores know all definitions of the histories.
func announce(worlds ...*World) {
	for _, w := range worlds {
		require.NoError(w.T, w.fleet().Announce(context.Background(), []string{"fp-article", "fp-issue"}))
	}
}

// startJob starts a case, and returns its one job. It is offered, or stays with the store.
func (w *World) startJob(offered bool) *state.Job {
	w.T.Helper()
	var job *state.Job
	w.Update(func(b *Batch) {
		id := b.Start(`1`)
		for j := range b.tree(id).Case(id).Jobs.All() {
			job = j
		}
		if offered {
			b.shared().Offer(job.ID)
		}
	})
	return job
}

// taken takes jobs, and returns their ids.
func (w *World) taken(f store.TakeFilter) (ids []workitem.JobID) {
	w.T.Helper()
	if f.Max == 0 {
		f.Max = 100
	}
	jobs, err := w.fleet().Take(context.Background(), f)
	require.NoError(w.T, err)
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// offerJob offers a job of a case with a priority and a due time.
func (w *World) offerJob(priority int, due time.Time) (id workitem.JobID) {
	w.T.Helper()
	w.Update(func(b *Batch) {
		root, now := b.Start(`1`), b.Now()
		id = b.ids.NewJobID(now)
		b.do(root, "tell", &state.JobOpened{Job: &state.Job{ID: id, Case: root, Root: root, Kind: state.JobCall, Name: "tell", Input: json.RawMessage(`1`),
			Priority: priority, State: state.JobPending, Due: due, Created: now}})
		b.shared().Offer(id)
	})
	return id
}

func takeAged(a, b *World) {
	announce(a, b)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	offer := func() []workitem.JobID { // in the order of their urgency, with aging
		low, late, high := a.offerJob(-1, now), a.offerJob(5, now.Add(7*time.Minute)), a.offerJob(5, now.Add(5*time.Minute))
		return []workitem.JobID{high, low, late}
	}
	jobs := offer()
	for _, id := range jobs {
		require.Equal(b.T, []workitem.JobID{id}, b.taken(store.TakeFilter{Max: 1, Aging: time.Minute}))
	}
	jobs = offer()
	require.ElementsMatch(b.T, []workitem.JobID{jobs[0], jobs[2]}, b.taken(store.TakeFilter{Max: 2, Aging: 2 * time.Minute}), "the head start is longer")
	require.Equal(b.T, jobs[1:2], b.taken(store.TakeFilter{Max: 2, Aging: time.Minute}))
	jobs = offer()
	require.ElementsMatch(b.T, jobs, b.taken(store.TakeFilter{Max: 4, Aging: time.Minute}), "those of all priorities")
	jobs = offer()
	for _, id := range []workitem.JobID{jobs[0], jobs[2], jobs[1]} {
		require.Equal(b.T, []workitem.JobID{id}, b.taken(store.TakeFilter{Max: 1}))
	}
	agree(a, b)
}

func takeOnce(a, b *World) {
	require.NoError(a.T, b.fleet().Announce(context.Background(), []string{"another"}))
	a.startJob(false)
	first, second := a.startJob(true), a.startJob(true)
	require.Empty(b.T, b.taken(store.TakeFilter{}), "it has not the definition")
	announce(a, b)
	require.Empty(b.T, b.taken(store.TakeFilter{Without: []string{first.Queue}}))
	require.Empty(b.T, b.taken(store.TakeFilter{Only: []string{}}))
	require.Equal(b.T, []workitem.JobID{first.ID}, b.taken(store.TakeFilter{Only: []string{first.Queue}, Max: 1}))
	require.Equal(a.T, []workitem.JobID{second.ID}, a.taken(store.TakeFilter{}))
	require.Empty(a.T, a.taken(store.TakeFilter{}))
	require.Empty(b.T, b.taken(store.TakeFilter{}))
	agree(a, b)
}

func leaveFree(a, b *World) {
	announce(a, b)
	j := a.startJob(false)
	require.Empty(b.T, b.taken(store.TakeFilter{}))
	require.NoError(a.T, a.Store.Close())
	require.Equal(b.T, []workitem.JobID{j.ID}, b.taken(store.TakeFilter{}))
	a.Open()
	agree(a, b)
}

func waitingElsewhere(a, b *World) {
	announce(a, b)
	waiting := func(w *World, queue string, most int) int {
		found, err := w.fleet().Waiting(context.Background(), map[string]int{queue: most, "empty": 5})
		require.NoError(w.T, err)
		require.Zero(w.T, found["empty"])
		return found[queue]
	}
	held := a.startJob(false)
	a.startJob(true)
	b.startJob(false)
	require.Equal(b.T, 2, waiting(b, held.Queue, 10), "one that the other store holds, and one that none does")
	require.Equal(b.T, 1, waiting(b, held.Queue, 1))
	require.Equal(a.T, 2, waiting(a, held.Queue, 10))
	a.Update(func(b *Batch) { b.Claim(held.Root, held.Root) })
	require.Equal(b.T, 1, waiting(b, held.Queue, 10), "the other one runs")
	a.offerJob(0, a.clock)
	require.Equal(b.T, 1, waiting(b, "", 10), "of the default queue")
	agree(a, b)
}

func overdueJobs(a, b *World) {
	announce(a, b)
	var mine []workitem.JobID
	for range 3 {
		mine = append(mine, a.startJob(false).ID)
		a.startJob(true)
	}
	b.startJob(false)
	ended := a.startJob(false)
	a.Update(func(b *Batch) {
		b.Claim(ended.Root, ended.Root)
		b.Complete(ended.Root, ended.Root, `1`, false)
		for j := range b.tree(ended.Root).Case(ended.Root).Jobs.All() {
			if j.State.Live() {
				mine = append(mine, j.ID) // that of the task that follows
			}
		}
	})
	overdue := func(due time.Time, most int) (ids []workitem.JobID) {
		jobs, err := a.fleet().Overdue(context.Background(), due, most)
		require.NoError(a.T, err)
		for _, j := range jobs {
			require.True(a.T, j.Due.Before(due))
			ids = append(ids, j.ID)
		}
		return ids
	}
	later := a.clock.Add(time.Hour)
	require.Equal(a.T, mine, overdue(later, 100))
	require.Equal(a.T, mine[:2], overdue(later, 2))
	first, err := a.fleet().Overdue(context.Background(), later, 1)
	require.NoError(a.T, err)
	require.Empty(a.T, overdue(first[0].Due, 100))
	agree(a, b)
}

// beat sends a heartbeat, which a Tick does.
func (w *World) beat() {
	w.T.Helper()
	_, err := w.fleet().Tick(context.Background(), store.EngineState{Busy: true, Clock: w.clock})
	require.NoError(w.T, err)
}

// awaitNews ticks until news are as they are awaited to be.
func (w *World) awaitNews(done func(store.News) bool) {
	w.T.Helper()
	require.Eventually(w.T, func() bool {
		news, err := w.fleet().Tick(context.Background(), store.EngineState{Busy: true, Clock: w.clock})
		require.NoError(w.T, err)
		return done(news)
	}, time.Minute, 100*time.Millisecond)
}

func adoptDead(a, b *World) {
	announce(a, b)
	j := a.startJob(false)
	a.Update(func(b *Batch) { b.Claim(j.Root, j.Root) })
	a.awaitNews(func(n store.News) bool { return n.Others == 1 })
	k, ok := a.Store.(store.Killer)
	require.True(a.T, ok, "the store cannot be killed")
	require.NoError(a.T, k.Kill())
	require.Empty(b.T, b.taken(store.TakeFilter{}))
	died := false
	for quiet := (store.EngineState{Clock: b.clock}); !died; {
		news, err := b.fleet().Tick(context.Background(), quiet)
		require.NoError(b.T, err)
		require.Positive(b.T, news.Soon)
		if died = news.Died == 1 && news.Free && news.Others == 0; !died {
			require.LessOrEqual(b.T, news.Next, news.Soon, "it looks again soon, though nothing is busy but the one that is missed")
			<-time.After(100 * time.Millisecond)
		}
	}
	jobs, err := b.fleet().Take(context.Background(), store.TakeFilter{Max: 10})
	require.NoError(b.T, err)
	require.Len(b.T, jobs, 1)
	require.Equal(b.T, j.ID, jobs[0].ID)
	require.Equal(b.T, state.JobRunning, jobs[0].State)
	a.Open()
	agree(a, b)
}

// fencer is an Opener by which a test has another process declare all engines dead.
type fencer interface {
	Fence(ctx context.Context) error
}

func fencedStore(a, b *World) {
	f, ok := a.Opener.(shared).Opener.(fencer)
	if !ok {
		return
	}
	announce(a, b)
	id, _ := two(a, b)
	j := a.startJob(false)
	_, err := a.fleet().Tick(context.Background(), store.EngineState{Clock: a.clock})
	require.NoError(a.T, err)
	require.NoError(a.T, f.Fence(context.Background()))
	err = a.TryUpdate(func(b *Batch) error {
		b.Send(id, id, `1`, nil)
		return nil
	})
	require.ErrorIs(a.T, err, store.ErrFenced)
	require.ErrorIs(a.T, err, store.ErrConflict, "the same may be tried again")
	agree(a, b)
	_, err = a.fleet().Tick(context.Background(), store.EngineState{Clock: a.clock})
	require.ErrorIs(a.T, err, store.ErrFenced)
	_, err = a.fleet().Tick(context.Background(), store.EngineState{Clock: a.clock})
	require.NoError(a.T, err, "it gets the error once")
	a.Update(func(b *Batch) { b.Send(id, id, `2`, nil) })
	require.Contains(a.T, a.taken(store.TakeFilter{}), j.ID, "what it held is free")
	_, err = b.fleet().Tick(context.Background(), store.EngineState{Clock: a.clock})
	require.ErrorIs(b.T, err, store.ErrFenced, "it finds out by itself")
	agree(a, b)
}

func newsOfTick(a, b *World) {
	id, other := two(a, b)
	known := make(map[workitem.CaseID]int64)
	look := func() store.News {
		news, err := a.fleet().Tick(context.Background(), store.EngineState{Roots: known, Clock: a.clock})
		require.NoError(a.T, err)
		require.Equal(a.T, 1, news.Others)
		return news
	}
	for _, root := range []workitem.CaseID{id, other} {
		known[root] = a.Want.Trees[root].Case(root).LastSeq
	}
	before := look()
	require.Empty(a.T, before.Changed)
	require.Positive(a.T, before.Next)
	b.Update(func(b *Batch) { b.Send(id, id, `1`, nil) })
	after := look()
	require.Equal(a.T, []workitem.CaseID{id}, after.Changed)
	require.Greater(a.T, after.Head, before.Head)
	for _, value := range []json.RawMessage{nil, json.RawMessage(`{"paused":true}`), json.RawMessage(`{"paused":false}`), nil} {
		b.Update(func(b *Batch) {
			require.NoError(b.T, b.Tx.Set(context.Background(), "queue/editors", value))
			require.NoError(b.T, b.Tx.Set(context.Background(), "limit/ü", value))
		})
		a.View(func(ctx context.Context, r store.Reader) {
			all, err := r.Settings(ctx)
			require.NoError(a.T, err)
			require.Equal(a.T, store.SettingsDigest(all), look().Settings)
		})
	}
}
