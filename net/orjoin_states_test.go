package net

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The trait of a state has a bit for what holds something, in the last word too, and a state has all bits of those it is above.
func TestTraitsOfStates(t *testing.T) {
	for cells := 8; cells <= 600; cells += 8 {
		for c := range cells {
			v := make(state, cells)
			v[c] = 1 + byte(c%int(many))
			require.Equal(t, uint64(1)<<(c%8*8+c/8%8), v.trait(), "cell %d of %d", c, cells)
		}
	}
	require.Zero(t, make(state, 64).trait())
}

// A comparison goes word by word, and costs as many as it reads: up to the first that decides, and all of them if none does.
func TestAComparisonOfStatesCostsTheWordsThatItReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v, w := make(state, 40), make(state, 40)
		first := -1
		for c := range v {
			v[c], w[c] = byte(rng.IntN(int(many)+1)), byte(rng.IntN(3)) // seldom more than v has
			if v[c] < w[c] && first < 0 {
				first = c
			}
		}
		s := &search{}
		require.Equal(t, first < 0, s.above(v, w))
		if first < 0 {
			require.Equal(t, 5, s.work)
		} else {
			require.Equal(t, first/8+1, s.work, "%v above %v", v, w)
		}
	}
}
