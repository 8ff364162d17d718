package verify_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// hub parts into very many branches of one task each, and joins them again.
func hub(t *testing.T, branches int, split, join net.Rule) *net.Net {
	d := &net.Definition{Name: "hub", Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}},
		Tasks: []net.Task{{Name: "S", Split: split}, {Name: "J", Join: join}},
		Flows: []net.Flow{{From: "i", To: "S"}, {From: "J", To: "o"}}}
	for i := range branches {
		name := fmt.Sprint("A", i)
		d.Tasks = append(d.Tasks, net.Task{Name: name})
		d.Flows = append(d.Flows, net.Flow{From: "S", To: name}, net.Flow{From: name, To: "J"})
	}
	n, err := net.Compile(d)
	require.NoError(t, err)
	return n
}

// Splits and joins of more branches than a word has bits are reduced like any other; only the sets of an or-split are
// too many. Without reduction, an and-split of 70 branches would have more states than anybody can look at.
func TestVeryWideSplits(t *testing.T) {
	for _, branches := range []int{64, 65, 70, 3000} {
		for _, gate := range []net.Rule{net.And, net.Xor} {
			rep := verify.Net(hub(t, branches, gate, gate), verify.Options{})
			require.Equal(t, verify.Sound, rep.Verdict, "%s of %d branches", gate, branches)
		}
		rep := verify.Net(hub(t, branches, net.Or, net.Or), verify.Options{})
		require.Contains(t, []verify.Verdict{verify.Sound, verify.Unknown}, rep.Verdict)
		rep = verify.Net(hub(t, branches, net.And, net.Xor), verify.Options{States: 2000})
		require.Contains(t, codesOf(rep), "improper-completion", "%d branches", branches)
		rep = verify.Net(hub(t, branches, net.Xor, net.And), verify.Options{States: 2000})
		require.Contains(t, codesOf(rep), "no-option-to-complete", "%d branches", branches)
	}
}

// An xor-join of 5000 inputs asks twelve million times whether an earlier one is empty.
func TestMismatchOfAVeryWideJoin(t *testing.T) {
	n := hub(t, 5000, net.And, net.Xor)
	rep := verify.Net(n, verify.Options{States: 20_000})
	require.Equal(t, []string{"improper-completion"}, codesOf(rep))
	require.Less(t, len(rep.Findings[0].Witness.Steps), 10)
}

// Or-blocks in each other are seen through from the inside, also where a short branch leads past the inner ones.
func TestDeepOrBlocks(t *testing.T) {
	d := &net.Definition{Name: "deep", Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "o", Role: net.End}},
		Tasks: []net.Task{{Name: "A"}}}
	first, last := "A", "A"
	for i := range 1000 {
		split, join, side := fmt.Sprint("S", i), fmt.Sprint("J", i), fmt.Sprint("B", i)
		d.Tasks = append(d.Tasks, net.Task{Name: split, Split: net.Or}, net.Task{Name: join, Join: net.Or}, net.Task{Name: side})
		ways := []net.Flow{{From: split, To: first}, {From: last, To: join}, {From: split, To: side}, {From: side, To: join}}
		if i%2 == 0 {
			ways = append(ways[2:], ways[:2]...)
		}
		d.Flows = append(d.Flows, ways...)
		first, last = split, join
	}
	d.Flows = append(d.Flows, net.Flow{From: "i", To: first}, net.Flow{From: last, To: "o"})
	n := net.MustCompile(d)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rep := verify.Net(n, verify.Options{States: 100})
	runtime.ReadMemStats(&after)
	require.Equal(t, verify.Sound, rep.Verdict)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(30<<20), "what is needed for one pass")
}
