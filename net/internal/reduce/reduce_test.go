package reduce_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net/internal/reduce"
)

// build makes a net of named transitions, which take from some places and put into others; one letter is a place. The
// token is in i, and o is the end.
func build(traced bool, places string, transitions ...[2]string) (r *reduce.Net, end int32) {
	place := func(c byte) int32 {
		for p := range places {
			if places[p] == c {
				return int32(p)
			}
		}
		panic("no place " + string(c))
	}
	r = reduce.New(len(places), traced)
	r.Places[place('i')].Marked = true
	r.Places[place('o')].Fixed = true
	for label, t := range transitions {
		tr := reduce.Transition{OrTask: -1, SplitLabel: -1, Label: int32(label), Seq: r.Leaf(int32(label))}
		for i := range len(t[0]) {
			tr.In = append(tr.In, place(t[0][i]))
		}
		for i := range len(t[1]) {
			tr.Out = append(tr.Out, reduce.Arc{Place: place(t[1][i])})
		}
		r.Transitions = append(r.Transitions, tr)
	}
	r.Finish()
	return r, place('o')
}

// left counts what reduction has left.
func left(r *reduce.Net) (places, transitions int) {
	for _, p := range r.Places {
		if !p.Removed {
			places++
		}
	}
	for _, t := range r.Transitions {
		if !t.Removed {
			transitions++
		}
	}
	return places, transitions
}

// The case of the package comment: a parallel block shrinks to the end.
func TestParallelBlock(t *testing.T) {
	block := [][2]string{{"i", "pr"}, {"p", "q"}, {"r", "s"}, {"qs", "o"}}
	r, end := build(false, "iprqso", block...)
	r.Run()
	places, transitions := left(r)
	require.Equal(t, []int{1, 0}, []int{places, transitions})
	require.True(t, r.SoundStateMachine(end))
	require.False(t, r.Unsafe)

	// With a trace, the moves that lead to what is left are the run of the block.
	r, _ = build(true, "iprqso", block...)
	r.Run()
	var labels []int32
	for _, m := range r.Prefix() {
		labels = append(labels, m.Label)
	}
	require.ElementsMatch(t, []int32{0, 1, 2, 3}, labels)
	require.Equal(t, []int32{0, 3}, []int32{labels[0], labels[3]}, "the split comes first, and the join last")
}

// A choice whose branches meet in a join that waits for both is not reduced to a sound net.
func TestChoiceBeforeAndJoin(t *testing.T) {
	r, end := build(false, "iqso", [2]string{"i", "q"}, [2]string{"i", "s"}, [2]string{"qs", "o"})
	r.Run()
	require.False(t, r.SoundStateMachine(end))
	sys, firings := r.System(end, false)
	require.NotNil(t, sys)
	require.Len(t, firings, len(sys.Moves))
}

// Parallel branches that meet in a choice put two tokens into one place.
func TestForkBeforeXorJoin(t *testing.T) {
	r, _ := build(false, "ipro", [2]string{"i", "pr"}, [2]string{"p", "o"}, [2]string{"r", "o"})
	r.Run()
	require.True(t, r.Unsafe)
}
