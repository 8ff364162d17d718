package storetest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Check compares everything that a store shows with what it should hold.
func (w *World) Check() {
	w.T.Helper()
	w.View(func(ctx context.Context, r store.Reader) { w.Want.Check(ctx, w.T, r) })
}

// Check compares everything that a reader shows with the model.
func (m *Model) Check(ctx context.Context, t testing.TB, r store.Reader) {
	t.Helper()
	cases, err := r.Cases(ctx, store.CaseFilter{Page: store.Page{Limit: 1 << 20}})
	require.NoError(t, err)
	require.Len(t, cases, len(m.Cases), "cases")
	for _, c := range cases {
		require.Equal(t, row(m.Cases[c.ID]), row(c), "case %s", c.ID)
	}
	items, err := r.Items(ctx, store.ItemFilter{Page: store.Page{Limit: 1 << 20}})
	require.NoError(t, err)
	require.Len(t, items, len(m.Items), "items")
	for _, it := range items {
		require.Equal(t, asJSON(t, m.Items[it.ID]), asJSON(t, it.Item), "item %s", it.ID)
		require.Equal(t, m.Cases[it.Case].Root, it.Root)
		require.Equal(t, m.Cases[it.Case].Workflow, it.Workflow)
	}
	jobs, err := r.Jobs(ctx, store.JobFilter{Page: store.Page{Limit: 1 << 20}})
	require.NoError(t, err)
	require.Len(t, jobs, len(m.Jobs), "jobs")
	for _, j := range jobs {
		require.Equal(t, asJSON(t, m.Jobs[j.ID]), asJSON(t, j), "job %s", j.ID)
	}
	m.checkCounts(ctx, t, r)
	m.checkIncidents(ctx, t, r)
	m.checkEnded(ctx, t, r)
	m.checkWaits(ctx, t, r)
	m.checkJournal(ctx, t, r)
	for _, root := range m.Roots {
		tree, err := r.Tree(ctx, root)
		require.NoError(t, err)
		EqualTrees(t, m.Trees[root], tree)
	}
	m.checkTrees(ctx, t, r)
}

// checkTrees reads all trees at once, the newest first, and one that is not there.
func (m *Model) checkTrees(ctx context.Context, t testing.TB, r store.Reader) {
	t.Helper()
	roots := slices.Clone(m.Roots)
	slices.Reverse(roots)
	trees, err := r.Trees(ctx, append([]workitem.CaseID{{1, 2, 3}}, roots...))
	require.NoError(t, err)
	require.Len(t, trees, len(roots))
	for i, root := range roots {
		EqualTrees(t, m.Trees[root], trees[i])
	}
}

func (m *Model) checkCounts(ctx context.Context, t testing.TB, r store.Reader) {
	t.Helper()
	want := make(map[store.Count]int64)
	for _, c := range m.Cases {
		want[store.Count{What: "case", Workflow: c.Workflow, State: c.State.String()}]++
	}
	for _, it := range m.Items {
		want[store.Count{What: "item", Workflow: m.Cases[it.Case].Workflow, Task: it.Task, State: it.State.String()}]++
	}
	for _, j := range m.Jobs {
		want[store.Count{What: "job", Workflow: m.Cases[j.Case].Workflow, Task: j.Task, State: j.State.String()}]++
	}
	list, err := r.Counts(ctx)
	require.NoError(t, err)
	got := make(map[store.Count]int64)
	for _, c := range list {
		kind := c
		kind.N = 0
		got[kind] = c.N
	}
	require.Equal(t, want, got)
	require.Len(t, list, len(got), "each once")
}

func (m *Model) checkEnded(ctx context.Context, t testing.TB, r store.Reader) {
	t.Helper()
	items, cases := make(store.EndedCounts), make(store.EndedCounts)
	for _, it := range m.Items {
		items.AddItem(m.Cases[it.Case].Workflow, it, 1)
	}
	for _, c := range m.Cases {
		cases.AddCase(c, 1)
	}
	require.Equal(t, items, endedBy(ctx, t, r, store.RateFilter{Hourly: true}))
	require.Equal(t, cases, endedBy(ctx, t, r, store.RateFilter{Hourly: true, Cases: true}))
}

// endedBy is what a store counts as ended by a filter.
func endedBy(ctx context.Context, t testing.TB, r store.Reader, f store.RateFilter) store.EndedCounts {
	t.Helper()
	list, err := r.Ended(ctx, f)
	require.NoError(t, err)
	got := make(store.EndedCounts)
	for _, e := range list {
		kind := e
		kind.N = 0
		got[kind] = e.N
	}
	require.Len(t, list, len(got), "each once")
	return got
}

func (m *Model) checkJournal(ctx context.Context, t testing.TB, r store.Reader) {
	t.Helper()
	entries, err := r.Journal(ctx, store.JournalFilter{Limit: 1 << 20})
	require.NoError(t, err)
	require.Len(t, entries, len(m.Entries), "journal entries")
	for i, e := range entries {
		require.Equal(t, *m.Entries[i], withoutState(*e), "journal entry %d", e.Seq)
	}
}

// withoutState makes an entry comparable: nets of definitions are pointers, and those of a store are its own.
func withoutState(e store.Entry) store.Entry {
	e.Changes = slices.Clone(e.Changes)
	for i, event := range e.Changes {
		if opened, ok := event.(*state.CaseOpened); ok {
			c := *opened.Case
			c.Net = netOf(c.Workflow)
			e.Changes[i] = &state.CaseOpened{Case: &c}
		}
	}
	return e
}

// row is a case as a listing shows it: without its net, which is a pointer, and without what hangs on it.
func row(c *state.Case) state.Case {
	if c == nil {
		return state.Case{}
	}
	n := *c
	n.Net, n.Items, n.Jobs, n.Children = nil, state.Items{}, state.Jobs{}, nil
	n.Steps, n.Mail = state.Steps{}, state.Mail{}
	return n
}

// EqualTrees compares two trees case by case.
func EqualTrees(t testing.TB, want, got *state.Tree) {
	t.Helper()
	require.Equal(t, describe(t, want), describe(t, got))
}

func describe(t testing.TB, tree *state.Tree) string {
	var b strings.Builder
	tree.Each(func(c *state.Case) {
		b.WriteString(c.ID.String() + " " + c.Label() + "\n")
		for _, part := range []any{row(c), c.Items.Slice(), c.Jobs.Slice(), c.Children, c.Steps.Slice(), c.Mail.Slice()} {
			b.WriteString("  " + asJSON(t, part) + "\n")
		}
	})
	return b.String()
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	switch list := v.(type) { // an empty list and none at all are the same
	case []*workitem.Item:
		if len(list) == 0 {
			return "none"
		}
	case []*state.Job:
		if len(list) == 0 {
			return "none"
		}
	case []*workitem.Step:
		if len(list) == 0 {
			return "none"
		}
	case []*state.Message:
		if len(list) == 0 {
			return "none"
		}
	case []workitem.CaseID:
		if len(list) == 0 {
			return "none"
		}
	}
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
