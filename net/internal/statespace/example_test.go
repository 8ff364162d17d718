package statespace_test

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net/internal/statespace"
)

func ExampleSearch() {
	const i, r, x, o = 0, 1, 2, 3
	arcs := func(places ...int32) (list []statespace.Arc) {
		for _, p := range places {
			list = append(list, statespace.Arc{Place: p, Weight: 1})
		}
		return list
	}
	sys := &statespace.System{
		Places: 4, Start: []uint8{i: 1, o: 0}, End: o, MaxTokens: statespace.MaxCount,
		Moves: []statespace.Move{
			{In: arcs(i), Out: arcs(r), OrJoin: -1},    // S
			{In: arcs(r), Out: arcs(r, x), OrJoin: -1}, // C
			{In: arcs(r), Out: arcs(o), OrJoin: -1},    // E
		},
	}
	sys.Prepare()
	budget := statespace.Budget{States: 100, MoreStates: 100, Bytes: 1 << 20}
	search := statespace.NewSearch(sys, budget)
	search.Run(budget.States, budget.Bytes)

	counts := make([]uint8, sys.Places)
	for s := range int32(search.States.Len()) {
		var marked []string
		for _, p := range search.States.Load(nil, s, counts) {
			name := string("irxo"[p])
			if counts[p] == statespace.Omega {
				name = "ω" + name
			}
			marked = append(marked, name)
		}
		fmt.Println(s, strings.Join(marked, " "))
	}
	fmt.Println("improper completion in state", search.Improper)
	for _, c := range search.Coverings {
		fmt.Println("state", c.State, "covers state", c.Ancestor, "with more tokens in", string("irxo"[c.Places[0]]))
	}
	// Output:
	// 0 i
	// 1 r
	// 2 r x
	// 3 o
	// 4 r ωx
	// 5 x o
	// 6 ωx o
	// improper completion in state 5
	// state 4 covers state 2 with more tokens in x
}
