package net_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
)

// hub parts into very many branches of one task each, and joins them again.
func hub(t *testing.T, branches int, split, join net.Gate) *net.Net {
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
		for _, gate := range []net.Gate{net.And, net.Xor} {
			rep := net.Verify(hub(t, branches, gate, gate), net.VerifyOptions{})
			require.Equal(t, net.Sound, rep.Verdict, "%s of %d branches", gate, branches)
		}
		rep := net.Verify(hub(t, branches, net.Or, net.Or), net.VerifyOptions{})
		require.Contains(t, []net.Verdict{net.Sound, net.Unknown}, rep.Verdict)
		rep = net.Verify(hub(t, branches, net.And, net.Xor), net.VerifyOptions{States: 2000})
		require.Contains(t, []net.Verdict{net.Unsound, net.Unknown}, rep.Verdict)
		rep = net.Verify(hub(t, branches, net.Xor, net.And), net.VerifyOptions{States: 2000})
		require.NotEqual(t, net.Sound, rep.Verdict)
	}
}
