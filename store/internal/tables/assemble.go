package tables

import (
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Assemble makes a tree of cases, from the root down. A child that is not among them is one that no table knows yet; newer
// has it.
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
