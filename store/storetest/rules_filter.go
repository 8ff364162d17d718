package storetest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// twoRoots are two root cases of the history, one of them with child cases.
func (w *World) twoRoots() []workitem.CaseID {
	w.T.Helper()
	var parent workitem.CaseID
	for _, c := range w.Want.Cases {
		if !c.Parent.IsZero() {
			parent = c.Root
		}
	}
	other := slices.IndexFunc(w.Want.Roots, func(root workitem.CaseID) bool { return root != parent })
	return []workitem.CaseID{w.Want.Roots[other], parent}
}

func caseFilter(w *World) {
	w.history()
	w.Update(func(b *Batch) { b.StartAfter(w.Want.Roots[0]) })
	all := byID(w.Want.Cases)
	sample := all[len(all)/2]
	child := all[slices.IndexFunc(all, func(c *state.Case) bool { return !c.Parent.IsZero() })]
	keyed := all[slices.IndexFunc(all, func(c *state.Case) bool { return c.Key != "" })]
	after := all[slices.IndexFunc(all, func(c *state.Case) bool { return !c.Predecessor.IsZero() })]
	two := w.twoRoots()
	for _, q := range []struct {
		name   string
		filter store.CaseFilter
		holds  func(*state.Case) bool
	}{
		{"everything", store.CaseFilter{}, func(*state.Case) bool { return true }},
		{"id", store.CaseFilter{ID: sample.ID}, func(c *state.Case) bool { return c.ID == sample.ID }},
		{"ids", store.CaseFilter{IDs: []workitem.CaseID{keyed.ID, child.ID, {1}}}, func(c *state.Case) bool { return c.ID == keyed.ID || c.ID == child.ID }},
		{"no ids", store.CaseFilter{IDs: []workitem.CaseID{}}, func(*state.Case) bool { return false }},
		{"root", store.CaseFilter{Root: child.Root}, func(c *state.Case) bool { return c.Root == child.Root }},
		{"two roots", store.CaseFilter{Roots: two}, func(c *state.Case) bool { return slices.Contains(two, c.Root) }},
		{"no roots", store.CaseFilter{Roots: []workitem.CaseID{}}, func(*state.Case) bool { return false }},
		{"workflow", store.CaseFilter{Workflow: "issue"}, func(c *state.Case) bool { return c.Workflow == "issue" }},
		{"unknown workflow", store.CaseFilter{Workflow: "x"}, func(*state.Case) bool { return false }},
		{"fingerprint", store.CaseFilter{Fingerprint: "fp-issue"},
			func(c *state.Case) bool { return c.Fingerprint == "fp-issue" }},
		{"live", store.CaseFilter{States: []state.CaseState{state.CaseStarted}, Workflow: "article"},
			func(c *state.Case) bool { return c.State == state.CaseStarted && c.Workflow == "article" }},
		{"states", store.CaseFilter{States: []state.CaseState{state.CaseCompleted, state.CaseCanceled}},
			func(c *state.Case) bool { return c.State == state.CaseCompleted || c.State == state.CaseCanceled }},
		{"code", store.CaseFilter{Code: new("stopped")}, func(c *state.Case) bool { return c.Failure != nil && c.Failure.Code == "stopped" }},
		{"no code", store.CaseFilter{Code: new("")}, func(c *state.Case) bool { return c.Failure != nil && c.Failure.Code == "" }},
		{"key", store.CaseFilter{Key: keyed.Key}, func(c *state.Case) bool { return c.Key == keyed.Key }},
		{"restarts of two cases", store.CaseFilter{Predecessors: []workitem.CaseID{after.Predecessor, {200}}}, func(c *state.Case) bool { return c.Predecessor == after.Predecessor }},
		{"restarts of none", store.CaseFilter{Predecessors: []workitem.CaseID{}}, func(*state.Case) bool { return false }},
		{"no such key", store.CaseFilter{Key: "C-"}, func(*state.Case) bool { return false }},
		{"label", store.CaseFilter{Labels: map[string]string{"customer": "ada"}},
			func(c *state.Case) bool { return c.Labels["customer"] == "ada" }},
		{"two labels", store.CaseFilter{Labels: map[string]string{"customer": "ada", "size": "1"}},
			func(c *state.Case) bool { return c.Labels["customer"] == "ada" && c.Labels["size"] == "1" }},
		{"the value of another label", store.CaseFilter{Labels: map[string]string{"size": "ada"}}, func(*state.Case) bool { return false }},
		{"suspended", store.CaseFilter{Suspended: true}, func(c *state.Case) bool { return c.Suspended != nil }},
		{"roots", store.CaseFilter{RootOnly: true}, func(c *state.Case) bool { return c.Parent.IsZero() }},
		{"before", store.CaseFilter{Before: sample.Created},
			func(c *state.Case) bool { return c.Created.Before(sample.Created) }},
		{"since", store.CaseFilter{Since: sample.Created},
			func(c *state.Case) bool { return !c.Created.Before(sample.Created) }},
		{"all at once", store.CaseFilter{Root: child.Root, Workflow: "article", Since: child.Created, RootOnly: true},
			func(*state.Case) bool { return false }},
	} {
		w.View(func(ctx context.Context, r store.Reader) {
			got, err := r.Cases(ctx, q.filter)
			require.NoError(w.T, err)
			sameIDs(w, q.name, all, got, q.holds, func(c *state.Case) string { return c.ID.String() })
		})
	}
}

func itemFilter(w *World) {
	w.history()
	all := byID(w.Want.Items)
	sample := all[len(all)/2]
	rootOf := func(it *workitem.Item) workitem.CaseID { return w.Want.Cases[it.Case].Root }
	held := func(it *workitem.Item) bool { return it.State == workitem.Started && it.By == "worker/1" }
	none, editors, two := "", "editors", w.twoRoots()
	for _, q := range []struct {
		name   string
		filter store.ItemFilter
		holds  func(*workitem.Item) bool
	}{
		{"everything", store.ItemFilter{}, func(*workitem.Item) bool { return true }},
		{"id", store.ItemFilter{ID: sample.ID}, func(it *workitem.Item) bool { return it.ID == sample.ID }},
		{"ids", store.ItemFilter{IDs: []workitem.ID{sample.ID, all[0].ID}}, func(it *workitem.Item) bool { return it.ID == sample.ID || it.ID == all[0].ID }},
		{"no ids", store.ItemFilter{IDs: []workitem.ID{}}, func(*workitem.Item) bool { return false }},
		{"case", store.ItemFilter{Case: sample.Case}, func(it *workitem.Item) bool { return it.Case == sample.Case }},
		{"root", store.ItemFilter{Root: rootOf(sample)},
			func(it *workitem.Item) bool { return rootOf(it) == rootOf(sample) }},
		{"two roots", store.ItemFilter{Roots: two}, func(it *workitem.Item) bool { return slices.Contains(two, rootOf(it)) }},
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
		{"holder", store.ItemFilter{Holder: "worker/1"}, held},
		{"holder of a queue", store.ItemFilter{Holder: "worker/1", Queue: &editors}, func(it *workitem.Item) bool { return held(it) && it.Queue == "editors" }},
		{"holder, newest first", store.ItemFilter{Holder: "worker/1", Queue: &editors, Page: store.Page{Desc: true}}, func(it *workitem.Item) bool { return held(it) && it.Queue == "editors" }},
		{"holder of what failed", store.ItemFilter{Holder: "worker/1", States: []workitem.State{workitem.Failed}}, func(*workitem.Item) bool { return false }},
		{"somebody who holds nothing", store.ItemFilter{Holder: "worker"}, func(*workitem.Item) bool { return false }},
		{"attempt", store.ItemFilter{Attempt: 2}, func(it *workitem.Item) bool { return it.Attempt >= 2 }},
		{"an attempt that no item has", store.ItemFilter{Attempt: math.MaxInt}, func(*workitem.Item) bool { return false }},
		{"code", store.ItemFilter{Code: new("io")},
			func(it *workitem.Item) bool { return it.Failure != nil && it.Failure.Code == "io" }},
		{"no code", store.ItemFilter{Code: new("")},
			func(it *workitem.Item) bool { return it.Failure != nil && it.Failure.Code == "" }},
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
		func(j *state.Job) bool { return !j.Item.IsZero() && j.State == state.JobDone })]
	none, editors, two := "", "editors", w.twoRoots()
	workflow := func(j *state.Job) string { return w.Want.Cases[j.Case].Workflow }
	for _, q := range []struct {
		name   string
		filter store.JobFilter
		holds  func(*state.Job) bool
	}{
		{"everything", store.JobFilter{}, func(*state.Job) bool { return true }},
		{"id", store.JobFilter{ID: sample.ID}, func(j *state.Job) bool { return j.ID == sample.ID }},
		{"ids", store.JobFilter{IDs: []workitem.JobID{ofItem.ID, all[0].ID}}, func(j *state.Job) bool { return j.ID == ofItem.ID || j.ID == all[0].ID }},
		{"no ids", store.JobFilter{IDs: []workitem.JobID{}}, func(*state.Job) bool { return false }},
		{"case", store.JobFilter{Case: sample.Case}, func(j *state.Job) bool { return j.Case == sample.Case }},
		{"root", store.JobFilter{Root: sample.Root}, func(j *state.Job) bool { return j.Root == sample.Root }},
		{"two roots", store.JobFilter{Roots: two}, func(j *state.Job) bool { return slices.Contains(two, j.Root) }},
		{"item", store.JobFilter{Item: ofItem.Item}, func(j *state.Job) bool { return j.Item == ofItem.Item }},
		{"done", store.JobFilter{States: []state.JobState{state.JobDone}},
			func(j *state.Job) bool { return j.State == state.JobDone }},
		{"mixed states", store.JobFilter{States: []state.JobState{state.JobDone, state.JobPending}},
			func(j *state.Job) bool { return j.State == state.JobDone || j.State == state.JobPending }},
		{"workflow", store.JobFilter{Workflow: workflow(sample)}, func(j *state.Job) bool {
			return workflow(j) == workflow(sample)
		}},
		{"no such workflow", store.JobFilter{Workflow: "nowhere"}, func(*state.Job) bool { return false }},
		{"task", store.JobFilter{Task: ofItem.Task}, func(j *state.Job) bool { return j.Task == ofItem.Task }},
		{"kind", store.JobFilter{Kind: state.JobCall}, func(j *state.Job) bool { return j.Kind == state.JobCall }},
		{"queue", store.JobFilter{Queue: &editors}, func(j *state.Job) bool { return j.Queue == "editors" }},
		{"default queue", store.JobFilter{Queue: &none}, func(j *state.Job) bool { return j.Queue == "" }},
		{"due", store.JobFilter{Due: sample.Due}, func(j *state.Job) bool {
			return !j.Due.IsZero() && !j.Due.After(sample.Due)
		}},
	} {
		w.View(func(ctx context.Context, r store.Reader) {
			got, err := r.Jobs(ctx, q.filter)
			require.NoError(w.T, err)
			sameIDs(w, q.name, all, got, q.holds, func(j *state.Job) string { return j.ID.String() })
		})
	}
}

func journalFilter(w *World) {
	w.history()
	longest := slices.MaxFunc(w.Want.Roots, func(a, b workitem.CaseID) int { return len(w.entriesOf(a)) - len(w.entriesOf(b)) })
	chain := w.entriesOf(longest)
	middle := chain[len(chain)/2].Seq
	require.Greater(w.T, len(chain), 6)
	command, at := w.Want.Entries[0].Command, chain[len(chain)/2].At
	verb, _, _ := strings.Cut(command, " ")
	filters := []store.JournalFilter{
		{}, {After: 50}, {Limit: 7}, {After: 20, Limit: 3}, {After: 1 << 40},
		{Root: w.Want.Roots[0]}, {Root: w.Want.Roots[3],
			After: w.Want.Trees[w.Want.Roots[3]].Case(w.Want.Roots[3]).LastSeq - 1},
		{Root: w.Want.Roots[1], Limit: 2}, {Root: workitem.CaseID{1}},
		{Desc: true}, {Desc: true, Limit: 5}, {Desc: true, After: 20, Limit: 4}, {Until: 30}, {Until: 30, Desc: true, Limit: 3},
		{By: "ann"}, {By: "ann", Desc: true, Limit: 2}, {By: "nobody"}, {Root: w.Want.Roots[1], Desc: true},
		{Named: true}, {Named: true, Desc: true, After: 60, Limit: 3}, {Named: true, By: "ann", Until: 40}, {Named: true, Root: longest},
		{Named: true, Roots: w.twoRoots(), Desc: true, Limit: 2},
		{Command: command}, {Command: verb, Desc: true, Limit: 3}, {Command: verb[:1]}, {Command: command, Root: longest}, {Since: at}, {Before: at},
		{Since: at, Root: longest}, {Before: at, Root: longest, Desc: true, Limit: 2}, {Since: at, Before: at.Add(time.Minute), Roots: w.twoRoots()},
		{Root: w.Want.Roots[1], Desc: true, Limit: 2}, {Roots: w.twoRoots(), Desc: true, Limit: 3}, {Roots: w.twoRoots(), By: "ann"},
		{Roots: w.twoRoots(), Until: 60, Desc: true, Limit: 3}, {Roots: w.twoRoots(), Desc: true, After: 50, Limit: 3},
		{Roots: w.twoRoots()}, {Roots: w.twoRoots(), After: 20, Limit: 2}, {Roots: []workitem.CaseID{}},
		{Root: longest, Until: middle}, {Root: longest, Until: middle, Desc: true, Limit: 2}, {Root: longest, Until: middle - 1, Desc: true},
		{Root: longest, After: middle, Desc: true, Limit: 2}, {Root: longest, After: middle, Limit: 2},
		{From: 50}, {From: 50, Desc: true, Limit: 200}, {From: 50, After: 60, Desc: true}, {From: 60, After: 50, Limit: 4}, {From: 50, Named: true, Desc: true},
		{From: middle, Root: longest}, {From: middle, Root: longest, Desc: true}, {From: middle, Roots: w.twoRoots(), Desc: true}, {From: 1 << 40, Desc: true},
		{Root: longest, After: middle, Until: chain[len(chain)/2-1].Seq, Desc: true}, {Root: longest, After: chain[1].Seq, Until: middle}, {Root: longest, After: middle, Until: middle},
	}
	rng := rand.New(rand.NewPCG(3, 4)) // pages of one history, in any order, in one view
	for range 200 {
		f := store.JournalFilter{Root: longest, Limit: rng.IntN(5), Desc: rng.IntN(4) == 0}
		if at := rng.IntN(2 * len(chain)); at < len(chain) {
			f.After = chain[at].Seq + rng.Int64N(2)
		}
		if at := rng.IntN(2 * len(chain)); at < len(chain) {
			f.Until = chain[at].Seq + rng.Int64N(2)
		}
		if at := rng.IntN(4 * len(chain)); at < len(chain) {
			f.From = chain[at].Seq + rng.Int64N(2)
		}
		filters = append(filters, f)
	}
	w.View(func(ctx context.Context, r store.Reader) {
		for _, f := range filters {
			entries, err := r.Journal(ctx, f)
			require.NoError(w.T, err)
			var got []int64
			for _, e := range entries {
				got = append(got, e.Seq)
			}
			require.Equal(w.T, w.positionsOf(f), got, "%+v", f)
		}
	})
}

// positionsOf are those of the entries that a filter selects.
func (w *World) positionsOf(f store.JournalFilter) (want []int64) {
	all := slices.Clone(w.Want.Entries)
	if f.Desc {
		slices.Reverse(all)
	}
	for _, e := range all {
		of := (f.Root.IsZero() || e.Root == f.Root) && (f.Roots == nil || slices.Contains(f.Roots, e.Root))
		of = of && (f.By == "" || e.By == f.By) && (!f.Named || e.By != "") && (f.Until == 0 || e.Seq <= f.Until)
		of = of && e.Seq >= f.From && (f.Command == "" || strings.HasPrefix(e.Command+" ", f.Command+" "))
		of = of && (f.Before.IsZero() || e.At.Before(f.Before)) && (f.Since.IsZero() || !e.At.Before(f.Since))
		behind := e.Seq > f.After
		if f.Desc {
			behind = f.After == 0 || e.Seq < f.After
		}
		if of && behind && (f.Limit == 0 || len(want) < f.Limit) {
			want = append(want, e.Seq)
		}
	}
	return want
}

// entriesOf are the entries of a root case, oldest first.
func (w *World) entriesOf(root workitem.CaseID) (all []*store.Entry) {
	for _, e := range w.Want.Entries {
		if e.Root == root {
			all = append(all, e)
		}
	}
	return all
}

func stepFilter(w *World) {
	w.history()
	all := byID(w.Want.Steps)
	sample := all[slices.IndexFunc(all, func(s *workitem.Step) bool { return !w.Want.Cases[s.Case].Parent.IsZero() })]
	rootOf := func(s *workitem.Step) workitem.CaseID { return w.Want.Cases[s.Case].Root }
	two := []workitem.CaseID{rootOf(all[0]), rootOf(sample)}
	for _, q := range []struct {
		name   string
		filter store.StepFilter
		holds  func(*workitem.Step) bool
	}{
		{"everything", store.StepFilter{}, func(*workitem.Step) bool { return true }},
		{"case", store.StepFilter{Case: sample.Case}, func(s *workitem.Step) bool { return s.Case == sample.Case }},
		{"root", store.StepFilter{Root: rootOf(sample)}, func(s *workitem.Step) bool { return rootOf(s) == rootOf(sample) }},
		{"two roots", store.StepFilter{Roots: two}, func(s *workitem.Step) bool { return slices.Contains(two, rootOf(s)) }},
		{"job", store.StepFilter{Job: sample.Job}, func(s *workitem.Step) bool { return s.Job == sample.Job }},
		{"item", store.StepFilter{Item: sample.Item}, func(s *workitem.Step) bool { return s.Item == sample.Item }},
		{"kind", store.StepFilter{Kind: workitem.StepSleep}, func(s *workitem.Step) bool { return s.Kind == workitem.StepSleep }},
		{"target", store.StepFilter{Target: "paid"}, func(s *workitem.Step) bool { return s.Target == "paid" }},
		{"topic", store.StepFilter{Topic: true}, func(s *workitem.Step) bool { return s.Topic }},
		{"waiting", store.StepFilter{States: []workitem.StepState{workitem.StepWaiting}},
			func(s *workitem.Step) bool { return s.State == workitem.StepWaiting }},
		{"mixed states", store.StepFilter{States: []workitem.StepState{workitem.StepWaiting, workitem.StepCanceled}},
			func(s *workitem.Step) bool {
				return s.State == workitem.StepWaiting || s.State == workitem.StepCanceled
			}},
	} {
		w.View(func(ctx context.Context, r store.Reader) {
			got, err := r.Steps(ctx, q.filter)
			require.NoError(w.T, err)
			sameIDs(w, q.name, all, got, q.holds, func(s *workitem.Step) string { return s.ID.String() })
		})
	}
}

func messageFilter(w *World) {
	w.history()
	w.Update(func(b *Batch) { // one that a step has taken
		id := b.Start(`1`)
		b.Claim(id, id)
		b.Send(id, id, `2`, b.Record(id, id, "await", workitem.StepEvent, workitem.StepWaiting))
	})
	all := byID(w.Want.Mail)
	sample := all[slices.IndexFunc(all, func(m *state.Message) bool { return !w.Want.Cases[m.Case].Parent.IsZero() })]
	rootOf := func(m *state.Message) workitem.CaseID { return w.Want.Cases[m.Case].Root }
	two := []workitem.CaseID{rootOf(all[0]), rootOf(sample)}
	for _, q := range []struct {
		name   string
		filter store.MessageFilter
		holds  func(*state.Message) bool
	}{
		{"everything", store.MessageFilter{}, func(*state.Message) bool { return true }},
		{"case", store.MessageFilter{Case: sample.Case}, func(m *state.Message) bool { return m.Case == sample.Case }},
		{"root", store.MessageFilter{Root: rootOf(sample)}, func(m *state.Message) bool { return rootOf(m) == rootOf(sample) }},
		{"two roots", store.MessageFilter{Roots: two}, func(m *state.Message) bool { return slices.Contains(two, rootOf(m)) }},
		{"name", store.MessageFilter{Name: "paid"}, func(*state.Message) bool { return true }},
		{"other name", store.MessageFilter{Name: "late"}, func(*state.Message) bool { return false }},
		{"unread", store.MessageFilter{Unread: true}, func(m *state.Message) bool { return m.Step.IsZero() }},
	} {
		w.View(func(ctx context.Context, r store.Reader) {
			got, err := r.Messages(ctx, q.filter)
			require.NoError(w.T, err)
			sameIDs(w, q.name, all, got, q.holds, func(m *state.Message) string { return m.ID.String() })
		})
	}
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
