package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net/internal/graph"
)

// edges is a graph as a list of successors by node.
type edges [][]int

func (e edges) successors(x int) []int { return e[x] }

func TestComponents(t *testing.T) {
	e := edges{{1}, {2}, {1, 3}, {}, {4, 3}}
	c := graph.Components(len(e), e.successors)
	require.Equal(t, c[1], c[2], "1 and 2 can reach each other")
	require.Len(t, map[int]bool{c[0]: true, c[1]: true, c[3]: true, c[4]: true}, 4, "no others can")
	for x, next := range e {
		for _, y := range next {
			require.LessOrEqual(t, c[y], c[x], "a component has a smaller number than those that lead to it: %d -> %d", x, y)
		}
	}
	require.Empty(t, graph.Components(0, nil))
}

func TestDominators(t *testing.T) {
	// A choice at 1 whose branches 2 and 3 meet in 4, a loop from 5 back to 1, and 6, which 0 does not lead to.
	e := edges{{1}, {2, 3}, {4}, {4}, {5}, {1}, {4}}
	d := graph.NewDominators(len(e), 0, e.successors)
	for node, want := range []int{-1, 0, 1, 1, 1, 4, -1} {
		require.Equal(t, want, d.Of(node), "node %d", node)
	}
}

// A long chain is no recursion.
func TestLongChains(t *testing.T) {
	const size = 200_000
	next := func(x int) []int { return []int{min(x+1, size-1)} }
	require.Equal(t, size, graph.Components(size, next)[0])
	require.Equal(t, size-2, graph.NewDominators(size, 0, next).Of(size-1))
}
