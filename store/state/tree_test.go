package state_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var holder = net.MustCompile(&net.Definition{
	Name:       "holder",
	Conditions: []net.Condition{{Name: "start", Role: net.Start}, {Name: "end", Role: net.End}},
	Tasks:      []net.Task{{Name: "cases", Kind: net.Composite, Of: []string{"holder"}}, {Name: "items"}},
	Flows:      []net.Flow{{From: "start", To: "cases"}, {From: "cases", To: "items"}, {From: "items", To: "end"}},
})

// forest grows a tree of cases, each with an item, by commands of which some are rolled back.
type forest struct {
	*rapid.T
	tree  *state.Tree
	cases []workitem.CaseID
	items []workitem.ID
	ids   int
}

func (f *forest) id() (id [16]byte) {
	f.ids++
	id[13], id[14], id[15] = byte(f.ids>>16), byte(f.ids>>8), byte(f.ids)
	return id
}

func (f *forest) apply(e state.Change) {
	require.NoError(f, f.tree.Apply(e))
}

// open opens a case with an item below one of those that are there.
func (f *forest) open() {
	c := &state.Case{ID: f.id(), ParentTask: "cases", Net: holder, Fingerprint: "h"}
	if len(f.cases) > 0 {
		at := rapid.IntRange(0, min(2, len(f.cases)-1)).Draw(f.T, "parent") // so that a few have many
		c.Root, c.Parent = f.cases[0], f.cases[at]
		c.Generation = rapid.IntRange(1, 2).Draw(f.T, "generation")
	}
	it := &workitem.Item{ID: f.id(), Case: c.ID, Task: "items", State: workitem.Initialized}
	f.apply(&state.CaseOpened{Case: c})
	f.apply(&state.ItemOpened{Item: it})
	f.cases, f.items = append(f.cases, c.ID), append(f.items, it.ID)
}

func (f *forest) command() {
	cases, items := len(f.cases), len(f.items)
	f.tree.Begin()
	for range rapid.SampledFrom([]int{0, 1, 1, 40}).Draw(f.T, "opened") {
		f.open()
	}
	for range rapid.IntRange(0, 5).Draw(f.T, "moved") {
		id := rapid.SampledFrom(f.cases).Draw(f.T, "case")
		if rapid.Bool().Draw(f.T, "begins") {
			f.apply(&state.CaseBegun{Case: id})
		} else {
			end := rapid.SampledFrom([]state.CaseState{state.CaseCompleted, state.CaseFailed, state.CaseCanceled})
			f.apply(&state.CaseEnded{Case: id, State: end.Draw(f.T, "ends")})
		}
	}
	if cases > 0 && rapid.IntRange(0, 3).Draw(f.T, "rollback") == 0 {
		f.tree.Rollback()
		f.cases, f.items = f.cases[:cases], f.items[:items]
		return
	}
	f.tree.End(1)
}

// What a tree remembers, so that many cases do not cost more each than a few, is what it would find by looking.
func TestTreeOfManyCases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &forest{T: t, tree: state.NewTree()}
		f.tree.Begin()
		f.open()
		f.tree.End(1)
		for range rapid.IntRange(1, 20).Draw(t, "commands") {
			f.command()
			f.check()
		}
	})
}

func (f *forest) check() {
	var all []*state.Case
	f.tree.Each(func(c *state.Case) { all = append(all, c) })
	require.Len(f, all, len(f.cases))
	require.True(f, slices.Equal(all, f.tree.InOrder(slices.Values(f.cases))), "order")
	want := make(map[workitem.CaseID]map[int]workitem.Tally)
	for _, c := range all {
		if want[c.Parent] == nil {
			want[c.Parent] = make(map[int]workitem.Tally)
		}
		tally := want[c.Parent][c.Generation]
		tally.Add(c.ItemState(), false)
		want[c.Parent][c.Generation] = tally
	}
	for _, id := range f.cases {
		for generation := range 3 {
			require.Equal(f, want[id][generation], f.tree.ChildTally(id, "cases", generation))
		}
	}
	for i, id := range f.items {
		c, it := f.tree.Item(id)
		if it == nil || it.ID != id || c.ID != f.cases[i] {
			f.Fatalf("item %s of case %s is not found", id, f.cases[i])
		}
	}
}
