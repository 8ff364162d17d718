package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

func TestTheShortestWayToTheEnd(t *testing.T) {
	n := net.MustCompile(&net.Definition{
		Name:       "w",
		Conditions: []net.Condition{{Name: "s", Role: net.Start}, {Name: "e", Role: net.End}, {Name: "p"}, {Name: "q"}},
		Tasks: []net.Task{{Name: "A", Split: net.Xor}, {Name: "B"}, {Name: "C"}, {Name: "D", Split: net.Or}, {Name: "J"},
			{Name: "K", Join: net.Or}},
		Flows: []net.Flow{{From: "s", To: "A"}, {From: "A", To: "B"}, {From: "A", To: "D"}, {From: "B", To: "C"}, {From: "C", To: "K"},
			{From: "D", To: "p"}, {From: "D", To: "q"}, {From: "p", To: "J"}, {From: "q", To: "J"}, {From: "J", To: "K"}, {From: "K", To: "e"}},
	})
	at := func(marked ...string) net.Marking {
		m := make(net.Marking, n.NumConditions())
		for _, name := range marked {
			p, ok := n.ConditionByName(name)
			require.True(t, ok, name)
			m[p]++
		}
		return m
	}
	task := func(name string) net.TaskID {
		id, ok := n.TaskByName(name)
		require.True(t, ok)
		return id
	}
	for _, c := range []struct {
		name   string
		from   net.Marking
		busy   []net.TaskID
		budget int
		want   verify.Way
	}{
		{"from the start", at("s"), nil, 1000, verify.Way{Run: []string{"A", "B", "C", "K"}, Decided: true}},
		{"a task under way", at(), []net.TaskID{task("B")}, 1000, verify.Way{Run: []string{"B", "C", "K"}, Decided: true}},
		{"completed", at("e"), nil, 1000, verify.Way{Run: []string{}, Decided: true}},
		{"a branch is missing", at("p"), nil, 1000, verify.Way{Stuck: []string{}, Left: []string{"p"}, Decided: true}},
		{"two tokens in one branch", at("p", "p"), nil, 1000, verify.Way{Stuck: []string{}, Left: []string{"p"}, Decided: true}},
		{"no token at all", at(), nil, 1000, verify.Way{Stuck: []string{}, Decided: true}},
		{"no budget", at("s"), nil, 1, verify.Way{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, verify.WayFrom(n, c.from, c.busy, c.budget))
		})
	}
}
