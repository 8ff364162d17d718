package fleet_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/fleet"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	one, two, three = workitem.CaseID{1}, workitem.CaseID{2}, workitem.CaseID{3}
	errGone         = errors.New("the server is gone")
)

// world is everything around a member: the store, the work, and what the member asked for.
type world struct {
	mu    sync.Mutex
	news  []store.News // of the ticks; the last one continues
	errs  []error      // of the ticks
	ticks []store.EngineState
	hints chan store.Hint
	free  []*state.Job
	took  int
	anew  int   // how often Rejoined was called
	takes error // of Take

	roots     []workitem.CaseID
	filter    store.TakeFilter
	adopted   []*state.Job
	overdue   []*state.Job // jobs that the store says are this engine's
	unknown   []*state.Job // those of them that it does not know
	asked     []time.Time  // the times that Overdue was given
	refuses   bool         // it adopts only the first one of each call, unnoted
	others    bool
	refreshed []workitem.CaseID
	forgotten []workitem.CaseID
	moved     int
	sets      []string // the digests of settings that were to be taken up
	died      int
	reports   []error
	ticking   func() // called while the store looks
}

func (w *world) Shared() bool                                { return true }
func (w *world) Announce(context.Context, []string) error    { return nil }
func (w *world) Knows(context.Context, string) (bool, error) { return false, nil }
func (w *world) Hints() <-chan store.Hint                    { return w.hints }
func (w *world) Busy() bool                                  { return false }
func (w *world) CountWaiting(context.Context) error          { return nil }

func (w *world) Waiting(context.Context, map[string]int) (map[string]int, error) { return nil, nil }

func (w *world) Filters() (filters []store.TakeFilter, full bool) {
	w.locked(func() { filters, full = []store.TakeFilter{w.filter}, len(w.filter.Without) > 0 })
	return filters, full
}

func (w *world) Roots() (roots []workitem.CaseID) {
	w.locked(func() { roots = w.roots })
	return roots
}

func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) Tick(_ context.Context, s store.EngineState) (store.News, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticks = append(w.ticks, s)
	if w.ticking != nil {
		w.ticking()
	}
	var err error
	if len(w.errs) > 0 {
		err, w.errs = w.errs[0], w.errs[1:]
	}
	news := w.news[0]
	if len(w.news) > 1 {
		w.news = w.news[1:]
	}
	return news, err
}

func (w *world) Take(_ context.Context, f store.TakeFilter) ([]*state.Job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took++
	if w.takes != nil {
		return nil, w.takes
	}
	n := min(f.Max, len(w.free))
	jobs := w.free[:n]
	w.free = w.free[n:]
	return jobs, nil
}

func (w *world) Overdue(_ context.Context, due time.Time, most int) ([]*state.Job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, due)
	return w.overdue[:min(most, len(w.overdue))], nil
}

func (w *world) Unknown(jobs []*state.Job) []*state.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(jobs), func(j *state.Job) bool { return !slices.Contains(w.unknown, j) })
}

func (w *world) Adopt(_ context.Context, jobs []*state.Job) (left []*state.Job, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses {
		return jobs[1:], errGone
	}
	w.adopted = append(w.adopted, jobs...)
	return nil, nil
}

func (w *world) Rejoined() { w.anew++ }

func (w *world) Others(are bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = are
}

func (w *world) set(digest string) { w.locked(func() { w.sets = append(w.sets, digest) }) }

// run runs f with a member that is started, in a bubble. The world is locked while f runs, but for its waits.
func run(t *testing.T, w *world, f func(m *fleet.Member)) {
	synctest.Test(t, func(t *testing.T) {
		w.hints = make(chan store.Hint)
		ctx, cancel := context.WithCancel(t.Context())
		m := fleet.New(fleet.Options{
			Store: w, Work: w, Awaited: func() []workitem.CaseID { return nil },
			Refresh: func(root workitem.CaseID) { w.locked(func() { w.refreshed = append(w.refreshed, root) }) },
			Forget:  func(roots []workitem.CaseID) { w.locked(func() { w.forgotten = append(w.forgotten, roots...) }) },
			Moved:   func() { w.locked(func() { w.moved++ }) }, SettingsChanged: w.set, Died: func() { w.locked(func() { w.died++ }) },
			Report: func(err error) { w.locked(func() { w.reports = append(w.reports, err) }) }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, m.Join(ctx))
		m.Start(ctx)
		synctest.Wait()
		w.locked(func() { f(m) })
		cancel()
		m.Wait()
	})
}

// await lets time pass.
func (w *world) await(d time.Duration) {
	w.mu.Unlock()
	defer w.mu.Lock()
	<-time.After(d)
	synctest.Wait()
}

// settle lets the member do what it can.
func (w *world) settle() {
	w.mu.Unlock()
	defer w.mu.Lock()
	synctest.Wait()
}

// hint has the store give a hint.
func (w *world) hint(h store.Hint) {
	w.mu.Unlock()
	defer w.mu.Lock()
	w.hints <- h
}

// A member ticks when the store says so, and a second after a tick that failed.
func TestThePaceIsThatOfTheStore(t *testing.T) {
	w := &world{news: []store.News{{Next: 10 * time.Second}}}
	run(t, w, func(*fleet.Member) {
		ticks := len(w.ticks)
		w.await(30 * time.Second)
		require.Equal(t, ticks+3, len(w.ticks))
		w.errs = []error{errGone, errGone}
		ticks = len(w.ticks)
		w.await(13 * time.Second)
		require.Equal(t, ticks+3, len(w.ticks), "at 10, 11 and 12 seconds")
		require.Contains(t, w.reports, errGone)
	})
}

// While all is quiet, what this engine begins has it tick at once, and what another one does within a moment, and once
// more after that. No more than one tick in that time comes of it.
func TestAnIdleEngineTicksAfterAChange(t *testing.T) {
	w := &world{news: []store.News{{Next: 10 * time.Second, Soon: time.Second, Others: 1, Settled: true}}}
	run(t, w, func(m *fleet.Member) {
		ticked := func(n int) {
			t.Helper()
			w.settle()
			require.Len(t, w.ticks, n)
		}
		n := len(w.ticks)
		w.await(3 * time.Second)
		m.WaitBegan()
		ticked(n + 1)
		w.await(500 * time.Millisecond)
		m.Committed(&state.Tree{Root: one}, nil)
		m.WaitBegan()
		ticked(n + 1)
		w.await(500 * time.Millisecond)
		ticked(n + 2)
		require.False(t, w.ticks[n+1].Busy)

		w.await(3 * time.Second)
		w.hint(store.Hint{Roots: []workitem.CaseID{two}})
		w.await(900 * time.Millisecond)
		ticked(n + 2)
		w.news[0].Next = time.Second // as for one that is busy
		w.await(100 * time.Millisecond)
		ticked(n + 3)
		require.True(t, w.ticks[n+2].Busy, "the other one may have had no time to say that it is")
		w.news[0].Next = 10 * time.Second
		w.await(time.Second)
		ticked(n + 4)
		require.False(t, w.ticks[n+3].Busy)
		w.await(9 * time.Second)
		ticked(n + 4)
	})
}

// An engine that is alone ticks as the store says, whatever it does.
func TestAnEngineAloneTicksAtThePaceOfTheStore(t *testing.T) {
	w := &world{news: []store.News{{Next: 10 * time.Second, Soon: time.Second}}}
	run(t, w, func(m *fleet.Member) {
		n := len(w.ticks)
		w.await(3 * time.Second)
		m.WaitBegan()
		w.await(3 * time.Second)
		require.Len(t, w.ticks, n)
	})
}

// All free jobs are taken page by page as the member joins, and later ones when a tick or a hint says that there are
// some.
func TestFreeJobsAreTaken(t *testing.T) {
	w := &world{news: []store.News{{Free: true, Next: time.Minute}, {Others: 1, Next: time.Minute}}, free: make([]*state.Job, 450)}
	run(t, w, func(m *fleet.Member) {
		require.Equal(t, 450, len(w.adopted))
		took := w.took
		m.TakeWork()
		w.settle()
		require.Equal(t, took, w.took, "there is nothing to take")
		w.free = make([]*state.Job, 3)
		w.hint(store.Hint{Free: true})
		w.settle()
		require.Equal(t, 453, len(w.adopted))
		w.filter.Without = []string{"full"}
		w.hint(store.Hint{Free: true})
		w.settle()
		w.free = make([]*state.Job, 1)
		m.TakeWork()
		w.settle()
		require.Equal(t, 454, len(w.adopted), "of a queue that was full there may be more")
	})
}

// An engine that was declared dead takes what is free, which may be what it held.
func TestAFencedEngineTakesFreeJobs(t *testing.T) {
	w := &world{news: []store.News{{Next: time.Second}}}
	run(t, w, func(*fleet.Member) {
		w.errs, w.free = []error{store.ErrFenced}, make([]*state.Job, 2)
		w.await(time.Second)
		require.Len(t, w.adopted, 2)
		require.Equal(t, 1, w.anew)
	})
}

// Jobs that were taken while the store fails are this engine's: they are taken up by the next tick, also if nothing
// else is free then.
func TestTakenJobsAreAdoptedByNextTick(t *testing.T) {
	w := &world{news: []store.News{{Next: time.Second, Others: 1}}}
	run(t, w, func(*fleet.Member) {
		w.refuses, w.free = true, make([]*state.Job, 3)
		w.hint(store.Hint{Free: true})
		w.settle()
		require.Contains(t, w.reports, errGone)
		w.refuses = false
		w.await(time.Second)
		require.Len(t, w.adopted, 2)
		w.await(time.Second)
		require.Len(t, w.adopted, 2)
	})
}

// What a failed attempt may have taken is asked for by the next tick, also if nothing is free then.
func TestFailedTakeIsRepeatedByNextTick(t *testing.T) {
	w := &world{news: []store.News{{Next: time.Second, Others: 1}}}
	run(t, w, func(*fleet.Member) {
		w.takes, w.free = errGone, make([]*state.Job, 3)
		w.hint(store.Hint{Free: true})
		w.settle()
		w.takes = nil
		w.await(time.Second)
		require.Len(t, w.adopted, 3)
		took := w.took
		w.await(time.Second)
		require.Equal(t, took, w.took)
	})
}

// Root cases that are worked on are refreshed after a hint and after a tick, once at a time; others leave memory.
func TestChangesOfOtherEnginesAreRefreshed(t *testing.T) {
	w := &world{news: []store.News{{Next: time.Second, Others: 1, Settled: true}}, roots: []workitem.CaseID{one}}
	run(t, w, func(m *fleet.Member) {
		require.True(t, w.others)
		w.hint(store.Hint{Roots: []workitem.CaseID{one, two}})
		w.hint(store.Hint{Roots: []workitem.CaseID{one}})
		w.settle()
		require.Equal(t, []workitem.CaseID{one}, w.refreshed)
		require.Equal(t, []workitem.CaseID{two}, w.forgotten)
		require.Equal(t, 2, w.moved)
		m.Refreshed(one, 7)
		w.await(time.Second)
		require.Equal(t, map[workitem.CaseID]int64{one: 7}, w.ticks[len(w.ticks)-1].Roots)
		w.news = []store.News{{Next: time.Second, Others: 1, Changed: []workitem.CaseID{one}, Died: 1}}
		w.await(time.Second)
		require.Equal(t, []workitem.CaseID{one, one}, w.refreshed)
		require.Equal(t, 1, w.died)
	})
}

// While the store looks, this engine continues: what it has changed itself, or has no further use for, it does not read
// again.
func TestOwnChangesAreNotRefreshed(t *testing.T) {
	w := &world{news: []store.News{{Next: time.Second, Settled: true}}, roots: []workitem.CaseID{one, two, three}}
	run(t, w, func(m *fleet.Member) {
		w.news = []store.News{{Next: time.Second, Changed: []workitem.CaseID{one, two, three}}}
		w.ticking = func() {
			w.roots = []workitem.CaseID{one, two}
			m.Refreshed(two, 7)
		}
		w.await(time.Second)
		require.Equal(t, []workitem.CaseID{one}, w.refreshed)
	})
}

// What is set is looked at after a hint, and compared at each tick as long as there are others.
func TestSettingsOfOtherEnginesAreRead(t *testing.T) {
	w := &world{news: []store.News{{Next: time.Second, Settings: "a"}}}
	run(t, w, func(*fleet.Member) {
		w.await(3 * time.Second)
		require.Empty(t, w.sets, "it is alone")
		w.news[0].Others = 1
		w.await(time.Second)
		w.hint(store.Hint{Set: true})
		w.settle()
		w.news[0].Settings = "b"
		w.await(time.Second)
		require.Equal(t, []string{"a", "", "b"}, w.sets)
	})
}

// A case that is not worked on any more is not asked for.
func TestUnwatchedCasesAreForgotten(t *testing.T) {
	w := &world{news: []store.News{{Next: time.Second}}, roots: []workitem.CaseID{one}}
	run(t, w, func(*fleet.Member) {
		w.roots = nil
		w.await(time.Second)
		require.Empty(t, w.ticks[len(w.ticks)-1].Roots)
		require.True(t, slices.ContainsFunc(w.ticks, func(s store.EngineState) bool { return s.Busy }), "it was busy while it watched one")
		require.False(t, w.ticks[len(w.ticks)-1].Busy)
	})
}

// Those who follow the journal look again when it has grown, also from nothing, and as long as entries may appear
// before its end.
func TestJournalFollowersAreNotified(t *testing.T) {
	every := func(head int64, settled bool) store.News {
		return store.News{Head: head, Settled: settled, Next: time.Second}
	}
	w := &world{news: []store.News{every(0, true), every(0, true), every(5, false), every(5, false), every(5, true), every(5, true)}}
	run(t, w, func(*fleet.Member) {
		require.Zero(t, w.moved, "the journal is empty, and stays so")
		for i, want := range []int{1, 2, 3, 3} { // it grows, is unsettled still, has settled, is as it was
			w.await(time.Second)
			require.Equal(t, want, w.moved, "tick %d", i)
		}
	})
}
