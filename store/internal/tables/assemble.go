package tables

import (
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Assemble links the cases of a tree to their parents, from the root down. A child that is not among them is in no
// table yet, and is taken from newer.
func Assemble(
	root *state.Case, byID map[workitem.CaseID]*state.Case, newer func(workitem.CaseID) *state.Case,
) (*state.Tree, error) {
	cases := []*state.Case{root}
	for i := 0; i < len(cases); i++ {
		for _, id := range cases[i].Children {
			child := byID[id]
			if child == nil {
				child = newer(id)
			}
			if child == nil {
				return nil, fmt.Errorf("%w: case %s has a child %s, which is not there", store.ErrCorrupt, cases[i].ID,
					id)
			}
			cases = append(cases, child)
		}
	}
	return state.NewTree(cases...), nil
}

// AssembleAll returns the trees of root cases, in the order of roots, from their stored cases. The children of a parent
// are in the order of creation. A root that is missing, or is not a root case, has no tree.
func AssembleAll(roots []workitem.CaseID, stored []*state.Case) ([]*state.Tree, error) {
	byID := make(map[workitem.CaseID]*state.Case, len(stored))
	for _, k := range stored {
		byID[k.ID] = k
	}
	for _, k := range stored {
		if parent := byID[k.Parent]; parent != nil {
			parent.Children = append(parent.Children, k.ID)
		}
	}
	trees := make([]*state.Tree, 0, len(roots))
	for _, id := range roots {
		root := byID[id]
		if root == nil || !root.Parent.IsZero() {
			continue
		}
		tree, err := Assemble(root, byID, NothingNewer)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}
