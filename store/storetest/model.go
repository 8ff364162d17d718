package storetest

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Model is what a store should hold.
type Model struct {
	Trees   map[workitem.CaseID]*state.Tree
	Roots   []workitem.CaseID // in the order of their creation
	Cases   map[workitem.CaseID]*state.Case
	Items   map[workitem.ID]*workitem.Item
	Jobs    map[workitem.JobID]*state.Job
	Steps   map[workitem.StepID]*workitem.Step
	Mail    map[workitem.MessageID]*state.Message
	Entries []*store.Entry
}

func newModel() *Model {
	return &Model{
		Trees: make(map[workitem.CaseID]*state.Tree), Cases: make(map[workitem.CaseID]*state.Case),
		Items: make(map[workitem.ID]*workitem.Item), Jobs: make(map[workitem.JobID]*state.Job),
		Steps: make(map[workitem.StepID]*workitem.Step), Mail: make(map[workitem.MessageID]*state.Message),
	}
}

// take folds an entry that the store has acknowledged.
func (m *Model) take(t testing.TB, e *store.Entry) {
	tree := m.Trees[e.Root]
	if tree == nil {
		tree = state.NewTree()
		tree.Root = e.Root
		m.Trees[e.Root] = tree
		m.Roots = append(m.Roots, e.Root)
	}
	tree.Begin()
	for _, event := range e.Changes {
		require.NoError(t, tree.Apply(event))
	}
	d := tree.End(e.Seq)
	if d.Removed {
		m.remove(tree)
		return
	}
	for _, c := range d.Cases {
		m.Cases[c.ID] = c
	}
	for _, it := range d.Items {
		m.Items[it.ID] = it
	}
	for _, j := range d.Jobs {
		m.Jobs[j.ID] = j
	}
	for _, s := range d.Steps {
		m.Steps[s.ID] = s
	}
	for _, k := range d.Messages {
		m.Mail[k.ID] = k
	}
	m.Entries = append(m.Entries, e)
}

// remove forgets a tree.
func (m *Model) remove(tree *state.Tree) {
	gone := make(map[workitem.CaseID]bool)
	tree.Each(func(c *state.Case) { gone[c.ID] = true })
	maps.DeleteFunc(m.Cases, func(id workitem.CaseID, _ *state.Case) bool { return gone[id] })
	maps.DeleteFunc(m.Items, func(_ workitem.ID, it *workitem.Item) bool { return gone[it.Case] })
	maps.DeleteFunc(m.Jobs, func(_ workitem.JobID, j *state.Job) bool { return gone[j.Case] })
	maps.DeleteFunc(m.Steps, func(_ workitem.StepID, s *workitem.Step) bool { return gone[s.Case] })
	maps.DeleteFunc(m.Mail, func(_ workitem.MessageID, k *state.Message) bool { return gone[k.Case] })
	m.Entries = slices.DeleteFunc(m.Entries, func(e *store.Entry) bool { return e.Root == tree.Root })
	m.Roots = slices.DeleteFunc(m.Roots, func(root workitem.CaseID) bool { return root == tree.Root })
	delete(m.Trees, tree.Root)
}
