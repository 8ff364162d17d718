package net

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func singleBit(i int) Bits {
	b := NewBits(i + 1)
	b.Add(i)
	return b
}

func watchers(n *Net, conditions, busy Bits) Bits {
	to := NewBits(n.NumTasks())
	n.AddWatchers(to, conditions, busy)
	return to
}

// chainOfOrs is or-blocks one after the other: every or-join's slice holds all blocks before it.
func chainOfOrs(blocks int) *Net {
	d := &Definition{Name: "chain", Conditions: []Condition{{Name: "i", Role: Start}, {Name: "o", Role: End}}}
	last := "i"
	for i := range blocks {
		split, a, b, join := fmt.Sprint("S", i), fmt.Sprint("A", i), fmt.Sprint("B", i), fmt.Sprint("J", i)
		d.Tasks = append(d.Tasks, Task{Name: split, Split: Or}, Task{Name: a}, Task{Name: b}, Task{Name: join, Join: Or})
		d.Flows = append(d.Flows, Flow{From: last, To: split}, Flow{From: split, To: a}, Flow{From: split, To: b},
			Flow{From: a, To: join}, Flow{From: b, To: join})
		last = join
	}
	d.Flows = append(d.Flows, Flow{From: last, To: "o"})
	return MustCompile(d)
}

// A net of very many or-joins keeps only so much of what it knows of them, and answers as before when it has to work it
// out again.
func TestOrJoinsAreGivenUpAndMadeAgain(t *testing.T) {
	n := chainOfOrs(1400)
	ask := func(block int, token string) Decision {
		m, _ := marked(n, fmt.Sprintf("A%d->J%d %s", block, block, token))
		join, _ := n.TaskByName(fmt.Sprint("J", block))
		return n.Enabled(join, m, nil)
	}
	for range 2 {
		for block := range 1400 {
			require.Equal(t, Decision{Enabled: true}, ask(block, ""))
		}
		require.LessOrEqual(t, n.joins.bytes, maxKept)
		require.Less(t, len(n.joins.kept), 1400)
		require.Equal(t, Decision{}, ask(3, "S2->A2"))
	}
	first, last := watchers(n, singleBit(int(n.Start())), nil), watchers(n, nil, singleBit(n.NumTasks()-1))
	require.Equal(t, []int{1400, 1}, []int{first.Len(), last.Len()})
}

// An or-join of very many inputs keeps no ways to each of them, and finds them when it is asked.
func TestOrJoinOfAHub(t *testing.T) {
	d := notation("start i\nend o\ntask S split=or\ntask J join=or\ni -> S\nJ -> o")
	for i := range 3000 {
		name := fmt.Sprint("A", i)
		d.Tasks = append(d.Tasks, Task{Name: name})
		d.Flows = append(d.Flows, Flow{From: "S", To: name}, Flow{From: name, To: "J"})
	}
	d.Flows = append(d.Flows, Flow{From: "A8", To: "A9"}) // which is an and-join
	n := MustCompile(d)
	join, _ := n.TaskByName("J")
	for marking, want := range map[string]bool{
		"A0->J": true, "A0->J A7": false, "A0->J S->A2999": false, "A0->J S->A0": true,
		"A0->J S->A9": true, "A0->J A8->J A8->A9": true, "A0->J A8->J A8->A9 S->A9": false,
	} {
		m, busy := marked(n, marking)
		require.Equal(t, Decision{Enabled: want}, n.Enabled(join, m, busy), marking)
	}
	require.Nil(t, n.orJoin(join).ways)
}

// Which or-joins a change may matter to is read from a table, or, where that would be too large, found by a walk.
func TestWatchersWithAndWithoutATable(t *testing.T) {
	for seed := range uint64(20) {
		d := *blockNet(seed, 60, false).def
		d.Tasks = slices.Concat(d.Tasks[seed:], d.Tasks[:seed])
		n := MustCompile(&d)
		conditions, busy := NewBits(n.NumConditions()), NewBits(n.NumTasks())
		conditions.Add(int(seed) % n.NumConditions())
		busy.Add(int(seed*7) % n.NumTasks())
		walked := NewBits(n.NumTasks())
		n.walkToWatchers(walked, conditions, busy)
		require.Equal(t, walked, watchers(n, conditions, busy))
		for i := range n.NumTasks() {
			if n.isOrJoin(TaskID(i)) {
				_, scope := n.OrJoinScope(TaskID(i))
				c := int(seed) % n.NumConditions()
				require.Equal(t, slices.Contains(scope, ConditionID(c)), watchers(n, singleBit(c), nil).Has(i))
			}
		}
		n.watched().rows = nil
		require.Equal(t, walked, watchers(n, conditions, busy), "without a table")
	}
}
