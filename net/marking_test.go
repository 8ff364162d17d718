package net_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
)

// joins is a net in which three tasks join the conditions p, q and r, each by another gate.
func joins(t *testing.T) *net.Net {
	t.Helper()
	def := &net.Definition{Name: "w", Tasks: []net.Task{{Name: "s", Split: net.Or}, {Name: "and"}, {Name: "xor", Join: net.Xor}, {Name: "or", Join: net.Or}},
		Conditions: []net.Condition{{Name: "i", Role: net.Start}, {Name: "p"}, {Name: "q"}, {Name: "r"}, {Name: "e", Role: net.End}},
		Flows:      []net.Flow{{From: "i", To: "s"}}}
	for _, c := range []string{"p", "q", "r"} {
		def.Flows = append(def.Flows, net.Flow{From: "s", To: c})
	}
	for _, task := range []string{"and", "xor", "or"} {
		for _, c := range []string{"r", "p", "q"} { // not in the order of the conditions
			def.Flows = append(def.Flows, net.Flow{From: c, To: task})
		}
		def.Flows = append(def.Flows, net.Flow{From: task, To: "e"})
	}
	n, err := net.Compile(def)
	require.NoError(t, err)
	return n
}

// An and-join needs a token in each input and takes one from each; an xor-join needs one and takes the first in flow order; an
// or-join, when nothing more can come, takes one from each that is marked.
func TestJoins(t *testing.T) {
	n := joins(t)
	for _, test := range []struct {
		marked       string
		and, xor, or string // the conditions that a start takes from; "-" where the task is not enabled
	}{
		{"", "-", "-", "-"},
		{"p", "-", "p", "p"},
		{"q", "-", "q", "q"},
		{"pq", "-", "p", "pq"},
		{"rq", "-", "r", "rq"},
		{"rpq", "rpq", "r", "rpq"},
	} {
		m := make(net.Marking, n.NumConditions())
		for _, name := range test.marked {
			c, ok := n.ConditionByName(string(name))
			require.True(t, ok)
			m[c] = 2
		}
		for name, want := range map[string]string{"and": test.and, "xor": test.xor, "or": test.or} {
			task, _ := n.TaskByName(name)
			got := ""
			for _, c := range n.Consumes(nil, task, m) {
				got += n.ConditionName(c)
			}
			idle := net.NewBits(n.NumTasks())
			require.Equal(t, net.Decision{Enabled: want != "-"}, n.Enabled(task, m, idle), "%s with %q", name, test.marked)
			if want != "-" {
				require.Equal(t, want, got, "%s with %q", name, test.marked)
			}
			idle.Add(int(task))
			require.Equal(t, net.Decision{}, n.Enabled(task, m, idle), "%s is busy", name)
		}
	}
}

// A case begins with one token, in its start condition; a clone of a marking shares nothing with it.
func TestMarkings(t *testing.T) {
	n := joins(t)
	m := n.InitialMarking()
	require.Equal(t, net.Marking{1, 0, 0, 0, 0}, m[:5])
	c := m.Clone()
	c[0] = 7
	require.Equal(t, int32(1), m[0])
}
