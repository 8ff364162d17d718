package statespace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a search of all states finds, the outlook allows; and it excludes much of what does not happen.
func TestOutlookAllowsWhatHappens(t *testing.T) {
	whole, dead, excluded, safe, single := 0, 0, 0, 0, 0
	for seed := range uint64(2000) {
		sys := randomSystem(rand.New(rand.NewPCG(seed, 2)))
		for k := range sys.Moves {
			sys.Moves[k].Inhibitors = nil
		}
		x := NewSearch(sys, Budget{States: 2000, MoreStates: 2000, Bytes: testBytes})
		x.BeyondUnsafe, x.grows = true, slices.Repeat([]bool{true}, len(sys.Moves))
		x.Run(2000, testBytes)
		o := NewOutlook(sys)
		counts := make([]uint8, sys.Places)
		second := make([]bool, sys.Places)
		for i := range int32(x.States.Len()) {
			for _, p := range x.States.Load(nil, i, counts) {
				require.True(t, o.Marked.Has(int(p)), "seed %d: place %d is marked\n%s", seed, p, sys)
				second[p] = second[p] || counts[p] > 1
				require.True(t, counts[p] < 2 || o.Second.Has(int(p)), "seed %d: place %d holds %d tokens\n%s", seed, p, counts[p], sys)
			}
		}
		for _, c := range x.Coverings {
			for _, p := range c.Places {
				require.True(t, o.Growing.Has(int(p)), "seed %d: place %d is unbounded\n%s", seed, p, sys)
			}
		}
		for k, fired := range x.Fired {
			require.True(t, !fired || o.Fires[k], "seed %d: move %d fires\n%s", seed, k, sys)
		}
		if !x.whole {
			continue
		}
		whole++
		for k, fired := range x.Fired {
			dead += count(!fired)
			excluded += count(!o.Fires[k])
		}
		for p := range sys.Places {
			safe += count(!second[p])
			single += count(!o.Second.Has(p))
		}
	}
	require.Greater(t, whole, 1000)
	require.Greater(t, excluded, dead/2, "of moves that never fire")
	require.Greater(t, single, safe/2, "of places without a second token")
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// An outlook is made only of what its proof covers.
func TestOutlookRequiresPlainMoves(t *testing.T) {
	for name, change := range map[string]func(*Move){
		"an or-join":        func(m *Move) { m.OrJoin = 0 },
		"a routing task":    func(m *Move) { m.Urgent = true },
		"a region":          func(m *Move) { m.Resets = []int32{1} },
		"an inhibitor arc":  func(m *Move) { m.Inhibitors = []int32{1} },
		"a move of nothing": func(m *Move) { m.In = nil },
	} {
		m := Move{OrJoin: -1, In: []Arc{{Place: 0, Weight: 1}}, Out: []Arc{{Place: 1, Weight: 1}}}
		sys := &System{Places: 2, Start: []uint8{1, 0}, End: 1, Moves: []Move{m}}
		require.NotNil(t, NewOutlook(sys), name)
		change(&sys.Moves[0])
		require.Nil(t, NewOutlook(sys), name)
	}
}

// The example of [Outlook]: of all places only c can get a second token. A loop around it adds none, a loop with a split
// in it does unless a join takes both tokens.
func TestOutlook(t *testing.T) {
	const i, a, b, c = 0, 1, 2, 3
	move := func(in, out []int32) Move {
		m := Move{OrJoin: -1}
		for _, p := range in {
			m.In = append(m.In, Arc{Place: p, Weight: 1})
		}
		for _, p := range out {
			m.Out = append(m.Out, Arc{Place: p, Weight: 1})
		}
		return m
	}
	fork := []Move{move([]int32{i}, []int32{a, b}), move([]int32{a}, []int32{c}), move([]int32{b}, []int32{c})}
	for _, test := range []struct {
		name            string
		more            []Move
		second, growing []int
	}{
		{"no loop", nil, []int{c}, nil},
		{"both go round", []Move{move([]int32{c}, []int32{a})}, []int{a, c}, nil},
		{"each starts both again", []Move{move([]int32{c}, []int32{a, b})}, []int{a, b, c}, []int{a, b, c}},
		{"two start both again", []Move{{OrJoin: -1, In: []Arc{{Place: c, Weight: 2}}, Out: move(nil, []int32{a, b}).Out}}, []int{a, b, c}, nil},
	} {
		sys := &System{Places: 4, Start: []uint8{1, 0, 0, 0}, End: -1, Moves: append(slices.Clone(fork), test.more...)}
		o := NewOutlook(sys)
		var second, growing []int
		o.Second.Each(func(p int) { second = append(second, p) })
		o.Growing.Each(func(p int) { growing = append(growing, p) })
		require.Equal(t, test.second, second, test.name)
		require.Equal(t, test.growing, growing, test.name)
	}
}
