package net_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
