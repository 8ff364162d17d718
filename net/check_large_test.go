package net_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
)

// Whether routing tasks or composite tasks go round is found in one walk, however long a way they make: when each was
// followed on its own, such a net took minutes.
func TestLongChainsAreChecked(t *testing.T) {
	const many = 50_000
	chain := &net.Definition{
		Name:       "chain",
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}},
	}
	last := "i"
	for k := range many {
		name := fmt.Sprintf("r%d", k)
		chain.Tasks = append(chain.Tasks, net.Task{Name: name, Kind: net.Routing})
		chain.Flows = append(chain.Flows, net.Flow{From: last, To: name})
		last = name
	}
	chain.Flows = append(chain.Flows, net.Flow{From: last, To: "o"})
	require.Empty(t, chain.Check())

	workflows := make([]*net.Definition, many)
	for k := range workflows {
		workflows[k] = running(fmt.Sprintf("w%d", k), []string{fmt.Sprintf("w%d", min(k+1, many-1))})
	}
	workflows[many-1].Tasks = nil
	require.Empty(t, net.CheckAll(workflows))
	workflows[many-1].Tasks = []net.Task{{Name: "back", Kind: net.Composite, Of: []string{"w0"}}}
	require.Len(t, net.CheckAll(workflows), many)
}

// running is a workflow with a composite task for each of some workflows.
func running(name string, of []string) *net.Definition {
	d := &net.Definition{Name: name}
	for k, child := range of {
		d.Tasks = append(d.Tasks, net.Task{
			Name: fmt.Sprintf("%s.%d", name, k), Kind: net.Composite, Of: []string{child},
		})
	}
	return d
}

// A composite task is recursive exactly if its workflow can be reached from the one that it runs.
func TestRecursionInRandomWorkflows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := 1 + r.IntN(8)
		reach := make([][]bool, n)
		children := make([][]int, n)
		workflows := make([]*net.Definition, n)
		for i := range n {
			reach[i] = make([]bool, n)
			reach[i][i] = true
			var of []string
			for range r.IntN(3) {
				child := r.IntN(n)
				reach[i][child], children[i] = true, append(children[i], child)
				of = append(of, fmt.Sprintf("w%d", child))
			}
			workflows[i] = running(fmt.Sprintf("w%d", i), of)
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		var want, got []string
		for i, list := range children {
			for k, child := range list {
				if reach[child][i] {
					want = append(want, workflows[i].Tasks[k].Name)
				}
			}
		}
		for _, p := range net.CheckAll(workflows) {
			require.Equal(t, net.RecursiveComposite, p.Code)
			got = append(got, p.Subject)
		}
		require.ElementsMatch(t, want, got)
	}
}
