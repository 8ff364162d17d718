package state

import (
	"bytes"
	"iter"
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// manyCases is the number of cases from which on a tree has an index of items and jobs, instead of searching each case.
const manyCases = 16

// holders returns the cases that may have an item or job: all cases of a small tree, or the one that the index of a
// large tree has. The index is built by the first search. It may have entries of what no longer exists, but never lacks
// one that exists, or a command would not find its item.
func (t *Tree) holders(id [16]byte) iter.Seq[*Case] {
	if len(t.cases) < manyCases {
		return t.all()
	}
	if t.owners == nil {
		t.findOwners()
	}
	return func(yield func(*Case) bool) {
		if c := t.Case(t.owners[id]); c != nil {
			yield(c)
		}
	}
}

// findOwners builds the index. It is built again after as many additions as the tree has elements, so its amortised
// cost per addition is constant.
func (t *Tree) findOwners() {
	t.owners = make(map[[16]byte]workitem.CaseID, 2*len(t.cases))
	for c := range t.all() {
		for it := range c.Items.All() {
			t.owners[it.ID] = c.ID
		}
		for j := range c.Jobs.All() {
			t.owners[j.ID] = c.ID
		}
	}
	t.ownersLimit = 2*len(t.owners) + 1024
}

// noteOwner adds an item or job that was opened. An entry of what no longer exists is harmless, since the case is
// searched too.
func (t *Tree) noteOwner(id [16]byte, c workitem.CaseID) {
	if t.owners == nil {
		return
	}
	if t.owners[id] = c; len(t.owners) > t.ownersLimit {
		t.owners = nil // too many entries may be stale: the next search builds it again
	}
}

// siblings identifies the child cases of one activation of a composite task, which its policy counts.
type siblings struct {
	parent     workitem.CaseID
	task       string
	generation int
}

func siblingsOf(c *Case) siblings { return siblings{c.Parent, c.ParentTask, c.Generation} }

// ChildTally counts the child cases of an activation of a composite task by state. The policy asks for it at every end
// of a child: to count n children n times would take n² steps, so the tally of many is kept and updated (recount), also
// by a rollback.
func (t *Tree) ChildTally(parent workitem.CaseID, task string, generation int) workitem.Tally {
	b := siblings{parent, task, generation}
	if kept := t.tallies[b]; kept != nil {
		return *kept
	}
	var tally workitem.Tally
	for c := range t.Children(parent, task, generation) {
		tally.Add(c.ItemState(), false)
	}
	if tally.Total() > few {
		if t.tallies == nil {
			t.tallies = make(map[siblings]*workitem.Tally, 1)
		}
		kept := tally
		t.tallies[b] = &kept
	}
	return tally
}

// Children yields the child cases of an activation of a composite task, latest first. A loop may have created many in
// earlier activations. The number created in the present one is known, so the search ends when it has found as many:
//
//	children    k.1.1  k.1.2  k.2.1  call.5  k.2.2     present activation 2, of which 2 were made
//	                          ◀──────────────────      k.2.2, k.2.1, and nothing is left to look for
func (t *Tree) Children(parent workitem.CaseID, task string, generation int) iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		p := t.Case(parent)
		at, ok := p.Net.TaskByName(task)
		if !ok {
			return
		}
		left := len(p.Children)
		if present := p.Tasks[at]; present.Generation == generation {
			left = present.Created
		}
		b := siblings{parent, task, generation}
		for _, id := range slices.Backward(p.Children) {
			if left == 0 {
				return
			}
			c := t.Case(id)
			if c == nil || siblingsOf(c) != b {
				continue
			}
			if left--; !yield(c) {
				return
			}
		}
	}
}

// recount moves a child case from one tally to another, if tallies are kept; None is in neither.
func (t *Tree) recount(c *Case, from, to workitem.State) {
	if kept := t.tallies[siblingsOf(c)]; kept != nil {
		kept.Remove(from, false)
		kept.Add(to, false)
	}
}

// InOrder returns the given cases that are in the tree, in the order of [Tree.Each]. It compares their paths from the
// root instead of visiting the whole tree, which may have thousands of cases when a command has touched two.
func (t *Tree) InOrder(ids iter.Seq[workitem.CaseID]) []*Case {
	var list []*Case
	for id := range ids {
		if c := t.Case(id); c != nil {
			list = append(list, c)
		}
	}
	if len(list) < 2 {
		return list
	}
	paths := make(map[*Case][]byte, len(list)) // the ids from the root down, which increase among siblings
	for _, c := range list {
		var path []workitem.CaseID
		for at := c; at != nil; at = t.Case(at.Parent) {
			path = append(path, at.ID)
		}
		for _, id := range slices.Backward(path) {
			paths[c] = append(paths[c], id[:]...)
		}
	}
	slices.SortFunc(list, func(a, b *Case) int { return bytes.Compare(paths[a], paths[b]) })
	return list
}
