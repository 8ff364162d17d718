package net_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
)

// TestSmallBudgetsNeverMislead verifies nets with budgets that are far too small for a search. A verdict that is given
// all the same is the right one, what is found is there, and a run of moderate length often shows what the search could
// not come to.
func TestSmallBudgetsNeverMislead(t *testing.T) {
	tally := map[string]int{}
	for seed := range rounds() / 8 {
		g := newGrower(int64(seed))
		g.orBlocks, g.regions, g.routing, g.nestedOr = seed%2 == 0, seed%3 == 0, seed%5 == 0, seed%4 == 0
		g.grow(1 + g.rng.Intn(12))
		for range g.rng.Intn(4) {
			g.mutate()
		}
		for _, n := range []*net.Net{g.compile(), wild(int64(seed))} {
			if n == nil {
				continue
			}
			want := oracle(n)
			for _, states := range []int{2, 10, 60} {
				rep := net.Verify(n, net.VerifyOptions{States: states})
				requireNoContradiction(t, n, want, rep, fmt.Sprintf("seed %d, %d states: %s", seed, states, describe(n)))
				tally[fmt.Sprintf("%d %v", states, rep.Verdict)]++
			}
		}
	}
	t.Log(tally)
	require.Greater(t, tally["60 unsound"], 20*tally["60 unknown"])
}

func requireNoContradiction(t *testing.T, n *net.Net, want truth, rep net.Report, name string) {
	t.Helper()
	for _, f := range rep.Findings {
		replayNet(t, n, f)
		if want.whole {
			require.Contains(t, want.findings, f.String(), name)
		}
	}
	if !want.whole {
		require.False(t, want.growing && rep.Verdict == net.Sound, name)
		return
	}
	dead := func(f string) bool { return strings.HasPrefix(f, string(net.DeadTask)) }
	switch rep.Verdict {
	case net.Sound:
		require.Empty(t, want.findings, name)
	case net.WeaklySound:
		require.True(t, len(want.findings) > 0 && !slices.ContainsFunc(want.findings, func(f string) bool { return !dead(f) }), name)
	case net.Unsound:
		require.NotEmpty(t, want.findings, name)
	default:
		require.NotEqual(t, net.NoLimit, rep.Exhausted, name)
	}
}

// A run in which tokens pile up beyond counting ends before the move that would be too much.
func TestGrowthBeyondCountingIsToldAsItIs(t *testing.T) {
	n := wild(2022)
	rep := net.Verify(n, net.VerifyOptions{States: 10})
	require.Contains(t, strings.Join(codesOf(rep), " "), "unbounded")
	for _, f := range rep.Findings {
		replayNet(t, n, f)
	}
}

// lockNet has branches that run side by side and share a lock, which no rule of reduction takes out. All its states have
// to be looked at, and they double with each branch.
func lockNet(branches int) *net.Petri {
	fork, join := [3][]string{{"i"}, {"lock"}}, [3][]string{{"lock"}, {"o"}}
	var all [][3][]string
	for b := range branches {
		before, after := fmt.Sprintf("a%d", b), fmt.Sprintf("b%d", b)
		fork[1], join[0] = append(fork[1], before), append(join[0], after)
		all = append(all, [3][]string{{before, "lock"}, {after, "lock"}})
	}
	return petri(map[string]int{"i": 1}, append(all, fork, join)...)
}

// Each budget leaves a net undecided that a raised one decides.
func TestRaisedBudgetsDecide(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Millisecond); return now }
	for _, c := range []struct {
		branches   int
		low, raise net.VerifyOptions
		limit      net.Limit
	}{
		{12, net.VerifyOptions{States: 1000}, net.VerifyOptions{States: 10_000}, net.LimitStates},
		{18, net.VerifyOptions{}, net.VerifyOptions{States: 400_000}, net.LimitStates},
		{12, net.VerifyOptions{Memory: 100 << 10}, net.VerifyOptions{Memory: 1 << 20}, net.LimitMemory},
		{12, net.VerifyOptions{Time: time.Millisecond, Now: clock}, net.VerifyOptions{Time: time.Hour, Now: clock}, net.LimitTime},
	} {
		if c.branches > 12 && !nightly() {
			continue
		}
		rep := net.VerifyPetri(lockNet(c.branches), c.low)
		require.Equal(t, net.Unknown, rep.Verdict)
		require.Equal(t, c.limit, rep.Exhausted)
		rep = net.VerifyPetri(lockNet(c.branches), c.raise)
		require.Equal(t, net.Sound, rep.Verdict, "%v %v", c.limit, rep)
		require.Equal(t, net.NoLimit, rep.Exhausted)
	}
}

// A search that found a second token and ended for lack of states still comes to a run that gets stuck behind it.
func TestStuckRunsBehindSecondTokensAreFoundEarly(t *testing.T) {
	all := [][3][]string{{{"i"}, {"p", "q", "f"}}, {{"p"}, {"x"}}, {{"q"}, {"x"}}, {{"x"}, {"o1"}}, {{"z", "y"}, {"o2"}}}
	fork := [3][]string{{"f"}, {"y"}}
	for b := range 16 {
		at := fmt.Sprintf("a%d", b)
		fork[1] = append(fork[1], at)
		all = append(all, [3][]string{{at}, {at + "'"}}, [3][]string{{at + "'"}, {"o1"}})
	}
	rep := net.VerifyPetri(petri(map[string]int{"i": 1}, append(all, fork)...), net.VerifyOptions{MoreStates: 3000})
	require.Equal(t, net.LimitStates, rep.Exhausted)
	require.Contains(t, codesOf(rep), string(net.NoOptionToComplete))
}
