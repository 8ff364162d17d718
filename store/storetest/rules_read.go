package storetest

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

func present(w *World) {
	var id workitem.CaseID
	w.Update(func(b *Batch) { id = b.Start(`1`) })
	for range 10 {
		w.Check()
		w.Update(func(b *Batch) { b.Claim(id, id) })
		w.Check()
		w.Update(func(b *Batch) { b.Complete(id, id, `2`, true) })
	}
}

func concurrent(w *World) {
	rng := rand.New(rand.NewPCG(7, 8))
	w.Update(func(b *Batch) { b.Random(rng) })
	stop := make(chan struct{})
	var wait sync.WaitGroup
	errs := make(chan error, 8)
	for range 3 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := consistent(w.Store); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for range 50 {
		w.Update(func(b *Batch) { b.Random(rng); b.Random(rng) })
	}
	close(stop)
	wait.Wait()
	close(errs)
	require.NoError(w.T, <-errs)
	w.Check()
}

// consistent checks, in one view, that the newest journal entry of each root case is the one that its row was written
// for.
func consistent(s store.Store) error {
	return s.View(context.Background(), func(r store.Reader) error {
		entries, err := r.Journal(context.Background(), store.JournalFilter{Limit: 1 << 20})
		if err != nil {
			return err
		}
		newest := make(map[workitem.CaseID]int64)
		for _, e := range entries {
			newest[e.Root] = e.Seq
		}
		cases, err := r.Cases(context.Background(), store.CaseFilter{RootOnly: true, Page: store.Page{Limit: 1 << 20}})
		if err != nil {
			return err
		}
		if len(cases) != len(newest) {
			return errInconsistent{}
		}
		for _, c := range cases {
			if c.LastSeq != newest[c.ID] {
				return errInconsistent{}
			}
		}
		return nil
	})
}

type errInconsistent struct{}

func (errInconsistent) Error() string { return "the tables and the journal of one view disagree" }

// history makes a history of many shapes, half of it in the tables and half of it not yet.
func (w *World) history() {
	w.T.Helper()
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range 60 {
		w.Update(func(b *Batch) { b.Random(rng); b.Random(rng) })
		if i == 30 {
			require.NoError(w.T, w.Store.Idle(context.Background()))
		}
	}
}

func pages(w *World) {
	w.history()
	for _, desc := range []bool{false, true} {
		w.View(func(ctx context.Context, r store.Reader) {
			idOf := func(c *state.Case) string { return c.ID.String() }
			cases := paged(w, 3, func(p store.Page) ([]*state.Case, error) {
				return r.Cases(ctx, store.CaseFilter{Page: p})
			}, desc, idOf)
			require.Equal(w.T, ids(byID(w.Want.Cases), desc, idOf), cases)
			editors := "editors"
			items := paged(w, 3, func(p store.Page) ([]*store.ItemRow, error) {
				return r.Items(ctx, store.ItemFilter{Page: p, Queue: &editors, States: []workitem.State{workitem.Initialized}})
			}, desc, func(it *store.ItemRow) string { return it.ID.String() })
			var want []*workitem.Item
			for _, it := range byID(w.Want.Items) {
				if it.Queue == editors && it.State == workitem.Initialized {
					want = append(want, it)
				}
			}
			if !desc {
				slices.SortStableFunc(want, func(a, b *workitem.Item) int { return cmp.Compare(b.Priority, a.Priority) })
				require.False(w.T, slices.IsSortedFunc(want, func(a, b *workitem.Item) int {
					return strings.Compare(a.ID.String(), b.ID.String())
				}), "the order is that of the ids too, and shows nothing")
			}
			require.Equal(w.T, ids(want, desc, func(it *workitem.Item) string { return it.ID.String() }), items)
			idOfJob := func(j *state.Job) string { return j.ID.String() }
			jobs := paged(w, 3, func(p store.Page) ([]*state.Job, error) {
				return r.Jobs(ctx, store.JobFilter{Page: p})
			}, desc, idOfJob)
			require.Equal(w.T, ids(byID(w.Want.Jobs), desc, idOfJob), jobs)
			idOfStep := func(s *workitem.Step) string { return s.ID.String() }
			steps := paged(w, 3, func(p store.Page) ([]*workitem.Step, error) {
				return r.Steps(ctx, store.StepFilter{Page: p})
			}, desc, idOfStep)
			require.Equal(w.T, ids(byID(w.Want.Steps), desc, idOfStep), steps)
			idOfMessage := func(m *state.Message) string { return m.ID.String() }
			messages := paged(w, 3, func(p store.Page) ([]*state.Message, error) {
				return r.Messages(ctx, store.MessageFilter{Page: p})
			}, desc, idOfMessage)
			require.Equal(w.T, ids(byID(w.Want.Mail), desc, idOfMessage), messages)
		})
	}
}

func dueOrder(w *World) {
	w.history()
	var want []*state.Job
	for _, j := range byID(w.Want.Jobs) {
		if j.State == state.JobPending {
			want = append(want, j)
		}
	}
	require.Greater(w.T, len(want), 6)
	slices.SortStableFunc(want, func(a, b *state.Job) int {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID.String(), b.ID.String()))
	})
	for _, desc := range []bool{false, true} {
		w.View(func(ctx context.Context, r store.Reader) {
			got := paged(w, 2, func(p store.Page) ([]*state.Job, error) {
				return r.Jobs(ctx, store.JobFilter{Page: p, States: []state.JobState{state.JobPending}})
			}, desc, func(j *state.Job) string { return j.ID.String() })
			require.Equal(w.T, ids(want, desc, func(j *state.Job) string { return j.ID.String() }), got)
			due, err := r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobPending},
				Due: want[2].Due.Add(-time.Microsecond)})
			require.NoError(w.T, err)
			for _, j := range due {
				require.True(w.T, j.Due.Before(want[2].Due))
			}
		})
	}
}

func counts(w *World) {
	check := func() {
		w.T.Helper()
		w.View(func(ctx context.Context, r store.Reader) { w.Want.checkCounts(ctx, w.T, r) })
	}
	check() // none at all
	w.history()
	check()
	w.Crash()
	check()
}

func ended(w *World) {
	w.history()
	filters := []store.RateFilter{{}, {Workflow: "none"}, {Task: "none"}}
	for _, it := range w.Want.Items {
		if it.State == workitem.Completed {
			workflow, hour := w.Want.Cases[it.Case].Workflow, it.Ended.UTC().Truncate(time.Hour)
			filters = append(filters, store.RateFilter{Workflow: workflow, Task: it.Task}, store.RateFilter{Since: hour.Add(time.Minute)},
				store.RateFilter{Since: hour.Add(time.Hour)}, store.RateFilter{Before: hour.Add(time.Minute), Task: it.Task}, store.RateFilter{Before: hour})
			break
		}
	}
	require.Len(w.T, filters, 8, "something ended")
	for _, f := range slices.Clone(filters) {
		f.Task, f.Cases = "", true
		filters = append(filters, f)
	}
	check := func() {
		w.T.Helper()
		w.View(func(ctx context.Context, r store.Reader) {
			every := map[bool]store.EndedCounts{}
			for _, cases := range []bool{false, true} {
				every[cases] = endedBy(ctx, w.T, r, store.RateFilter{Hourly: true, Cases: cases})
			}
			for _, f := range filters {
				all := every[f.Cases]
				hourly, together := maps.Clone(all), make(store.EndedCounts)
				maps.DeleteFunc(hourly, func(e store.Ended, _ int64) bool {
					return f.Workflow != "" && e.Workflow != f.Workflow || f.Task != "" && e.Task != f.Task ||
						e.Hour.Before(f.Since.Truncate(time.Hour)) || !f.Before.IsZero() && !e.Hour.Before(f.Before)
				})
				for e, n := range hourly {
					e.Hour = time.Time{}
					together[e] += n
				}
				require.Equal(w.T, together, endedBy(ctx, w.T, r, f), "%+v", f)
				f.Hourly = true
				require.Equal(w.T, hourly, endedBy(ctx, w.T, r, f), "%+v", f)
			}
		})
	}
	check()
	w.Crash()
	w.Check()
	check()
}

// endedAgain is about a case that fails, continues, and fails again: it counts as it stands, and in the hour of its last end.
func endedAgain(w *World) {
	var id workitem.CaseID
	lost := &workitem.Failure{Code: "lost"}
	w.Update(func(b *Batch) {
		id = b.Start(`{"n":1}`)
		b.FailCase(id, id, lost)
	})
	w.Check()
	w.Update(func(b *Batch) { b.ResumeCase(id, id) })
	w.Check()
	w.clock = w.clock.Add(time.Hour)
	w.Update(func(b *Batch) { b.FailCase(id, id, lost) })
	w.Update(func(b *Batch) { b.ResumeCase(id, id) }) // both before anything reads
	w.Update(func(b *Batch) { b.FailCase(id, id, lost) })
	w.Check()
	w.Crash()
	w.Check()
}

// paged reads a listing in pages of the given size, and returns the ids. No page is longer, and none repeats a row.
func paged[T any](w *World, size int, read func(store.Page) ([]T, error), desc bool, id func(T) string) []string {
	w.T.Helper()
	var all []string
	page := store.Page{Limit: size, Desc: desc}
	for {
		rows, err := read(page)
		require.NoError(w.T, err)
		require.LessOrEqual(w.T, len(rows), size, "a page is longer than its limit")
		if len(rows) == 0 {
			return all
		}
		for _, row := range rows {
			require.NotContains(w.T, all, id(row), "a row comes twice")
			all = append(all, id(row))
		}
		page.After = all[len(all)-1]
	}
}

func ids[T any](rows []T, desc bool, id func(T) string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, id(row))
	}
	if desc {
		slices.Reverse(all)
	}
	return all
}

// byID lists the values of a map in the order of their keys.
func byID[K ~[16]byte, V any](m map[K]V) []V {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return slices.Compare(a[:], b[:]) })
	all := make([]V, len(keys))
	for i, k := range keys {
		all[i] = m[k]
	}
	return all
}
