package storetest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
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
	for range 100 {
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

func caseFilter(w *World) {
	w.history()
	all := byID(w.Want.Cases)
	sample := all[len(all)/2]
	child := all[slices.IndexFunc(all, func(c *store.Case) bool { return !c.Parent.IsZero() })]
	for _, q := range []struct {
		name   string
		filter store.CaseFilter
		holds  func(*store.Case) bool
	}{
		{"everything", store.CaseFilter{}, func(*store.Case) bool { return true }},
		{"id", store.CaseFilter{ID: sample.ID}, func(c *store.Case) bool { return c.ID == sample.ID }},
		{"root", store.CaseFilter{Root: child.Root}, func(c *store.Case) bool { return c.Root == child.Root }},
		{"workflow", store.CaseFilter{Workflow: "issue"}, func(c *store.Case) bool { return c.Workflow == "issue" }},
		{"unknown workflow", store.CaseFilter{Workflow: "x"}, func(*store.Case) bool { return false }},
		{"fingerprint", store.CaseFilter{Fingerprint: "fp-issue"},
			func(c *store.Case) bool { return c.Fingerprint == "fp-issue" }},
		{"live", store.CaseFilter{States: []store.CaseState{store.CaseStarted}, Workflow: "article"},
			func(c *store.Case) bool { return c.State == store.CaseStarted && c.Workflow == "article" }},
		{"states", store.CaseFilter{States: []store.CaseState{store.CaseCompleted, store.CaseCanceled}},
			func(c *store.Case) bool { return c.State == store.CaseCompleted || c.State == store.CaseCanceled }},
		{"roots", store.CaseFilter{RootOnly: true}, func(c *store.Case) bool { return c.Parent.IsZero() }},
		{"before", store.CaseFilter{Before: sample.Created},
			func(c *store.Case) bool { return c.Created.Before(sample.Created) }},
		{"since", store.CaseFilter{Since: sample.Created},
			func(c *store.Case) bool { return !c.Created.Before(sample.Created) }},
		{"all at once", store.CaseFilter{Root: child.Root, Workflow: "article", Since: child.Created, RootOnly: true},
			func(*store.Case) bool { return false }},
	} {
		w.View(func(ctx context.Context, r store.Reader) {
			got, err := r.Cases(ctx, q.filter)
			require.NoError(w.T, err)
			sameIDs(w, q.name, all, got, q.holds, func(c *store.Case) string { return c.ID.String() })
		})
	}
}

func itemFilter(w *World) {
	w.history()
	all := byID(w.Want.Items)
	sample := all[len(all)/2]
	rootOf := func(it *workitem.Item) workitem.CaseID { return w.Want.Cases[it.Case].Root }
	none, editors := "", "editors"
	for _, q := range []struct {
		name   string
		filter store.ItemFilter
		holds  func(*workitem.Item) bool
	}{
		{"everything", store.ItemFilter{}, func(*workitem.Item) bool { return true }},
		{"id", store.ItemFilter{ID: sample.ID}, func(it *workitem.Item) bool { return it.ID == sample.ID }},
		{"case", store.ItemFilter{Case: sample.Case}, func(it *workitem.Item) bool { return it.Case == sample.Case }},
		{"root", store.ItemFilter{Root: rootOf(sample)},
			func(it *workitem.Item) bool { return rootOf(it) == rootOf(sample) }},
		{"workflow", store.ItemFilter{Workflow: "article"}, func(*workitem.Item) bool { return true }},
		{"other workflow", store.ItemFilter{Workflow: "issue"}, func(*workitem.Item) bool { return false }},
		{"task", store.ItemFilter{Task: "review"}, func(it *workitem.Item) bool { return it.Task == "review" }},
		{"queue", store.ItemFilter{Queue: &editors}, func(it *workitem.Item) bool { return it.Queue == "editors" }},
		{"default queue", store.ItemFilter{Queue: &none}, func(it *workitem.Item) bool { return it.Queue == "" }},
		{"worklist", store.ItemFilter{Queue: &editors, States: []workitem.State{workitem.Initialized}},
			func(it *workitem.Item) bool { return it.Queue == "editors" && it.State == workitem.Initialized }},
		{"live", store.ItemFilter{States: []workitem.State{workitem.Initialized, workitem.Started}},
			func(it *workitem.Item) bool { return it.State.Live() }},
		{"mixed states", store.ItemFilter{States: []workitem.State{workitem.Started, workitem.Failed}},
			func(it *workitem.Item) bool { return it.State == workitem.Started || it.State == workitem.Failed }},
		{"attempt", store.ItemFilter{Attempt: 2}, func(it *workitem.Item) bool { return it.Attempt >= 2 }},
		{"code", store.ItemFilter{Code: "io"},
			func(it *workitem.Item) bool { return it.Failure != nil && it.Failure.Code == "io" }},
		{"before", store.ItemFilter{Before: sample.Created},
			func(it *workitem.Item) bool { return it.Created.Before(sample.Created) }},
		{"since", store.ItemFilter{Since: sample.Created},
			func(it *workitem.Item) bool { return !it.Created.Before(sample.Created) }},
	} {
		w.View(func(ctx context.Context, r store.Reader) {
			got, err := r.Items(ctx, q.filter)
			require.NoError(w.T, err)
			items := make([]*workitem.Item, len(got))
			for i, row := range got {
				items[i] = row.Item
			}
			sameIDs(w, q.name, all, items, q.holds, func(it *workitem.Item) string { return it.ID.String() })
		})
	}
}

func jobFilter(w *World) {
	w.history()
	all := byID(w.Want.Jobs)
	sample := all[len(all)/2]
	ofItem := all[slices.IndexFunc(all,
		func(j *store.Job) bool { return !j.Item.IsZero() && j.State == store.JobDone })]
	none, editors := "", "editors"
	workflow := func(j *store.Job) string { return w.Want.Cases[j.Case].Workflow }
	for _, q := range []struct {
		name   string
		filter store.JobFilter
		holds  func(*store.Job) bool
	}{
		{"everything", store.JobFilter{}, func(*store.Job) bool { return true }},
		{"id", store.JobFilter{ID: sample.ID}, func(j *store.Job) bool { return j.ID == sample.ID }},
		{"case", store.JobFilter{Case: sample.Case}, func(j *store.Job) bool { return j.Case == sample.Case }},
		{"root", store.JobFilter{Root: sample.Root}, func(j *store.Job) bool { return j.Root == sample.Root }},
		{"item", store.JobFilter{Item: ofItem.Item}, func(j *store.Job) bool { return j.Item == ofItem.Item }},
		{"done", store.JobFilter{States: []store.JobState{store.JobDone}},
			func(j *store.Job) bool { return j.State == store.JobDone }},
		{"mixed states", store.JobFilter{States: []store.JobState{store.JobDone, store.JobPending}},
			func(j *store.Job) bool { return j.State == store.JobDone || j.State == store.JobPending }},
		{"workflow", store.JobFilter{Workflow: workflow(sample)}, func(j *store.Job) bool {
			return workflow(j) == workflow(sample)
		}},
		{"no such workflow", store.JobFilter{Workflow: "nowhere"}, func(*store.Job) bool { return false }},
		{"task", store.JobFilter{Task: ofItem.Task}, func(j *store.Job) bool { return j.Task == ofItem.Task }},
		{"kind", store.JobFilter{Kind: store.JobCall}, func(j *store.Job) bool { return j.Kind == store.JobCall }},
		{"queue", store.JobFilter{Queue: &editors}, func(j *store.Job) bool { return j.Queue == "editors" }},
		{"default queue", store.JobFilter{Queue: &none}, func(j *store.Job) bool { return j.Queue == "" }},
		{"due", store.JobFilter{Due: sample.Due}, func(j *store.Job) bool {
			return !j.Due.IsZero() && !j.Due.After(sample.Due)
		}},
	} {
		w.View(func(ctx context.Context, r store.Reader) {
			got, err := r.Jobs(ctx, q.filter)
			require.NoError(w.T, err)
			sameIDs(w, q.name, all, got, q.holds, func(j *store.Job) string { return j.ID.String() })
		})
	}
}

func journalFilter(w *World) {
	w.history()
	w.View(func(ctx context.Context, r store.Reader) {
		for _, f := range []store.JournalFilter{
			{}, {After: 50}, {Limit: 7}, {After: 20, Limit: 3}, {After: 1 << 40},
			{Root: w.Want.Roots[0]}, {Root: w.Want.Roots[3],
				After: w.Want.Trees[w.Want.Roots[3]].Case(w.Want.Roots[3]).LastSeq - 1},
			{Root: w.Want.Roots[1], Limit: 2}, {Root: workitem.CaseID{1}},
		} {
			var want []int64
			for _, e := range w.Want.Entries {
				if (f.Root.IsZero() || e.Root == f.Root) && e.Seq > f.After && (f.Limit == 0 || len(want) < f.Limit) {
					want = append(want, e.Seq)
				}
			}
			entries, err := r.Journal(ctx, f)
			require.NoError(w.T, err)
			var got []int64
			for _, e := range entries {
				got = append(got, e.Seq)
			}
			require.Equal(w.T, want, got, "%+v", f)
		}
	})
}

func pages(w *World) {
	w.history()
	for _, desc := range []bool{false, true} {
		page := func(after string) store.Page { return store.Page{After: after, Limit: 3, Desc: desc} }
		w.View(func(ctx context.Context, r store.Reader) {
			idOf := func(c *store.Case) string { return c.ID.String() }
			cases := paged(w, func(after string) ([]*store.Case, error) {
				return r.Cases(ctx, store.CaseFilter{Page: page(after)})
			}, idOf)
			require.Equal(w.T, ids(byID(w.Want.Cases), desc, idOf), cases)
			editors := "editors"
			items := paged(w, func(after string) ([]*store.ItemRow, error) {
				return r.Items(ctx, store.ItemFilter{Page: page(after), Queue: &editors,
					States: []workitem.State{workitem.Initialized}})
			}, func(it *store.ItemRow) string { return it.ID.String() })
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
			idOfJob := func(j *store.Job) string { return j.ID.String() }
			jobs := paged(w, func(after string) ([]*store.Job, error) {
				return r.Jobs(ctx, store.JobFilter{Page: page(after)})
			}, idOfJob)
			require.Equal(w.T, ids(byID(w.Want.Jobs), desc, idOfJob), jobs)
		})
	}
}

func dueOrder(w *World) {
	w.history()
	var want []*store.Job
	for _, j := range byID(w.Want.Jobs) {
		if j.State == store.JobPending {
			want = append(want, j)
		}
	}
	require.Greater(w.T, len(want), 6)
	slices.SortStableFunc(want, func(a, b *store.Job) int {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID.String(), b.ID.String()))
	})
	for _, desc := range []bool{false, true} {
		w.View(func(ctx context.Context, r store.Reader) {
			got := paged(w, func(after string) ([]*store.Job, error) {
				return r.Jobs(ctx, store.JobFilter{Page: store.Page{After: after, Limit: 2, Desc: desc},
					States: []store.JobState{store.JobPending}})
			}, func(j *store.Job) string { return j.ID.String() })
			require.Equal(w.T, ids(want, desc, func(j *store.Job) string { return j.ID.String() }), got)
			due, err := r.Jobs(ctx, store.JobFilter{States: []store.JobState{store.JobPending},
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

// paged reads a listing page by page and returns the ids.
func paged[T any](w *World, read func(after string) ([]T, error), id func(T) string) []string {
	w.T.Helper()
	var all []string
	after := ""
	for {
		rows, err := read(after)
		require.NoError(w.T, err)
		if len(rows) == 0 {
			return all
		}
		for _, row := range rows {
			all = append(all, id(row))
		}
		after = all[len(all)-1]
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

// sameIDs compares a listing with those of all that the condition holds for, whatever the order.
func sameIDs[T any](w *World, name string, all, got []T, holds func(T) bool, id func(T) string) {
	w.T.Helper()
	var want, have []string
	for _, v := range all {
		if holds(v) {
			want = append(want, id(v))
		}
	}
	for _, v := range got {
		have = append(have, id(v))
	}
	slices.Sort(have)
	require.Equal(w.T, want, have, name)
}
