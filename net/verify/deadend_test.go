package verify_test

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// A case can reach a dead end although the shortest run completes it: whether B or J is first decides.
func TestADeadEndBesideTheWay(t *testing.T) {
	n := net.MustCompile(&net.Definition{
		Name:       "hasty",
		Conditions: []net.Condition{{Name: "s", Role: net.Start}, {Name: "e", Role: net.End}},
		Tasks:      []net.Task{{Name: "A", Kind: net.Routing}, {Name: "B", Cancels: []string{"J"}}, {Name: "C"}, {Name: "J"}},
		Flows: []net.Flow{{From: "s", To: "A"}, {From: "A", To: "B"}, {From: "A", To: "C"}, {From: "B", To: "J"}, {From: "C", To: "J"},
			{From: "J", To: "e"}},
	})
	const b, j = 1, 3
	none := make(net.Marking, n.NumConditions())
	end, decided := verify.DeadEndFrom(n, n.InitialMarking(), nil, 1000)
	require.True(t, decided)
	require.Nil(t, end)

	both := []net.TaskID{b, j}
	require.Equal(t, []string{"J"}, verify.WayFrom(n, none, both, 1000).Run)
	end, decided = verify.DeadEndFrom(n, none, both, 1000)
	require.True(t, decided)
	require.Equal(t, &verify.DeadEnd{Run: []string{"B"}, Deadlock: true, Left: []string{"B->J"}}, end)

	end, decided = verify.DeadEndFrom(n, none, nil, 1000)
	require.True(t, decided)
	require.Equal(t, &verify.DeadEnd{Run: []string{}, Deadlock: true}, end)

	end, decided = verify.DeadEndFrom(n, none, both, 1)
	require.False(t, decided)
	require.Nil(t, end)
}

// From any state of any net, there is a dead end exactly if a walk over all states finds one.
func TestDeadEndsAgainstOracle(t *testing.T) {
	tally := map[bool]int{}
	for seed := range int64(rounds()) {
		var n *net.Net
		if seed%2 == 0 {
			n = wild(seed)
		} else {
			g := newGrower(seed)
			g.orBlocks, g.regions, g.routing = seed%4 == 1, seed%3 == 0, seed%5 == 0
			g.grow(1 + g.rng.Intn(8))
			n = g.compile()
		}
		if n == nil {
			continue
		}
		from := anyState(n, rand.New(rand.NewSource(seed)))
		want := oracleFrom(n, from)
		if !want.whole {
			continue
		}
		var busy []net.TaskID
		from.busy.Each(func(t int) { busy = append(busy, net.TaskID(t)) })
		end, decided := verify.DeadEndFrom(n, from.tokens, busy, 2*oracleStates)
		require.True(t, decided, "seed %d: %s", seed, describe(n))
		require.Equal(t, slices.Contains(want.findings, string(verify.NoOptionToComplete)), end != nil,
			"seed %d, tokens %v, started %v: %v\n%s", seed, from.tokens, busy, end, describe(n))
		tally[end != nil]++
	}
	t.Log(tally)
	require.Positive(t, tally[true])
	require.Positive(t, tally[false])
}

// anyState puts a token into some conditions, and starts some tasks, as a case that was repaired may be.
func anyState(n *net.Net, rng *rand.Rand) caseState {
	s := interpreter{n}.first()
	s.tokens[slices.Index(s.tokens, 1)] = 0
	for range 1 + rng.Intn(2) {
		if c := net.ConditionID(rng.Intn(n.NumConditions())); c != n.End() {
			s.tokens[c]++
		}
	}
	for t := range n.NumTasks() {
		if n.Task(net.TaskID(t)).Kind != net.Routing && rng.Intn(n.NumTasks()) == 0 {
			s.busy.Add(t)
		}
	}
	return s
}
