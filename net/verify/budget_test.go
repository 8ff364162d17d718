package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"

	"github.com/tasq-dev/tasq/internal/testsize"
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
				rep := verify.Net(n, verify.Options{States: states})
				requireNoContradiction(t, n, want, rep, fmt.Sprintf("seed %d, %d states: %s", seed, states, describe(n)))
				tally[fmt.Sprintf("%d %v", states, rep.Verdict)]++
			}
		}
	}
	t.Log(tally)
	require.Greater(t, tally["60 unsound"], 20*tally["60 unknown"])
}

func requireNoContradiction(t *testing.T, n *net.Net, want truth, rep verify.Report, name string) {
	t.Helper()
	for _, f := range rep.Findings {
		replayNet(t, n, f)
		if want.whole {
			require.Contains(t, want.findings, f.String(), name)
		}
	}
	if !want.whole {
		require.False(t, want.growing && rep.Verdict == verify.Sound, name)
		return
	}
	dead := func(f string) bool { return strings.HasPrefix(f, string(verify.DeadTask)) }
	switch rep.Verdict {
	case verify.Sound:
		require.Empty(t, want.findings, name)
	case verify.WeaklySound:
		require.True(t, len(want.findings) > 0 && !slices.ContainsFunc(want.findings, func(f string) bool { return !dead(f) }), name)
	case verify.Unsound:
		require.NotEmpty(t, want.findings, name)
	default:
		require.NotEqual(t, verify.NoLimit, rep.Exhausted, name)
	}
}

// A run in which tokens pile up beyond counting ends before the move that would be too much.
func TestRunEndsBeforeTokensOverflow(t *testing.T) {
	n := wild(2022)
	rep := verify.Net(n, verify.Options{States: 10})
	require.Contains(t, strings.Join(codesOf(rep), " "), "unbounded")
	for _, f := range rep.Findings {
		replayNet(t, n, f)
	}
}

// A place that holds more tokens than are counted, without a loop, leaves a net undecided for growth.
func TestCountsHaveABound(t *testing.T) {
	arc := func(place, weight int) net.PetriArc { return net.PetriArc{Place: place, Weight: weight} }
	p := &net.Petri{Places: []net.PetriPlace{{Name: "i", Initial: 1}, {Name: "a"}, {Name: "b"}, {Name: "x"}, {Name: "o"}}}
	for step := range 3 { // i, a, b, x: each step puts 100 tokens into x, and the last one a token into the end
		t := net.PetriTransition{Name: fmt.Sprint("T", step), In: []net.PetriArc{arc(step, 1)}}
		t.Out = []net.PetriArc{arc([]int{1, 2, 4}[step], 1), arc(3, 100)}
		p.Transitions = append(p.Transitions, t)
	}
	p.Transitions = append(p.Transitions, net.PetriTransition{Name: "E", In: []net.PetriArc{arc(3, 1)}})
	rep := verify.Petri(p, verify.Options{})
	require.Equal(t, verify.LimitGrowth, rep.Exhausted)
	require.NotEqual(t, verify.Sound, rep.Verdict)
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
		low, raise verify.Options
		limit      verify.Limit
	}{
		{12, verify.Options{States: 1000}, verify.Options{States: 10_000}, verify.LimitStates},
		{18, verify.Options{}, verify.Options{States: 400_000}, verify.LimitStates},
		{12, verify.Options{Memory: 100 << 10}, verify.Options{Memory: 1 << 20}, verify.LimitMemory},
		{12, verify.Options{Time: time.Millisecond, Now: clock}, verify.Options{Time: time.Hour, Now: clock}, verify.LimitTime},
	} {
		if c.branches > 12 && !testsize.Nightly() {
			continue
		}
		rep := verify.Petri(lockNet(c.branches), c.low)
		require.Equal(t, verify.Unknown, rep.Verdict)
		require.Equal(t, c.limit, rep.Exhausted)
		rep = verify.Petri(lockNet(c.branches), c.raise)
		require.Equal(t, verify.Sound, rep.Verdict, "%v %v", c.limit, rep)
		require.Equal(t, verify.NoLimit, rep.Exhausted)
	}
}

// A search that found a second token and ended for lack of states still comes to a run that gets stuck behind it.
func TestStuckRunsBehindSecondTokensAreFoundEarly(t *testing.T) {
	all := [][3][]string{{{"i"}, {"p", "q", "f"}}, {{"p"}, {"x"}}, {{"q"}, {"x"}}, {{"x"}, {"o1"}}, {{"z", "y"}, {"o2"}},
		{{"p", "q"}, {"o1"}}} // no free choice, so that the structure settles nothing
	fork := [3][]string{{"f"}, {"y"}}
	for b := range 16 {
		at := fmt.Sprintf("a%d", b)
		fork[1] = append(fork[1], at)
		all = append(all, [3][]string{{at}, {at + "'"}}, [3][]string{{at + "'"}, {"o1"}})
	}
	rep := verify.Petri(petri(map[string]int{"i": 1}, append(all, fork)...), verify.Options{MoreStates: 3000})
	require.Equal(t, verify.LimitStates, rep.Exhausted)
	require.Contains(t, codesOf(rep), string(verify.NoOptionToComplete))
}
