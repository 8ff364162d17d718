package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// mostWeight bounds the tokens that an arc moves, and those that a place begins with unless it counts as one of many: a
// search counts up to [statespace.MaxCount].
const mostWeight = statespace.MaxCount / 2

// findMany finds the places that begin with more tokens than a search counts.
//
// If every transition takes one token from one place, tokens move independently of each other. Then whether each can
// leave the net, which transitions fire and which places are bounded does not depend on their number, and one token
// stands for all, unless the first token in the only sink ends the run. The others rest where they begin.
func (l *petriLowering) findMany() {
	for i := range l.p.Places {
		if l.p.Places[i].Initial > mostWeight && l.counted(i) {
			if l.many == nil {
				l.many = net.NewBits(len(l.p.Places))
			}
			l.many.Add(i)
		}
	}
	if l.many == nil || l.end >= 0 || !l.independent() {
		return
	}
	one := *l.p
	one.Places, l.resting = slices.Clone(l.p.Places), make([]int, len(l.p.Places))
	l.many.Each(func(i int) {
		l.resting[i] = one.Places[i].Initial - 1
		one.Places[i].Initial = 1
	})
	l.p, l.many = &one, nil
}

// independent reports whether every transition takes one token from one place, and empties none.
func (l *petriLowering) independent() bool {
	return !slices.ContainsFunc(l.p.Transitions, func(t net.PetriTransition) bool {
		return len(t.Resets) > 0 || len(t.In) != 1 || t.In[0].Weight != 1
	})
}

// tokens returns what a place holds after a run, as the search counts it.
func (l *petriLowering) tokens(p int32, counted uint8, run []int32, sys *statespace.System) int {
	switch {
	case counted == statespace.Omega && l.many.Has(int(p)):
		n, _ := l.remaining(int(p), run, sys)
		return n
	case l.resting != nil:
		return int(counted) + l.resting[p]
	}
	return int(counted)
}

// remaining returns how many tokens of very many are left in a place after a run that does not empty it, and the
// fewest on the way.
func (l *petriLowering) remaining(place int, run []int32, sys *statespace.System) (left, fewest int) {
	left = l.p.Places[place].Initial
	fewest = left
	for _, k := range run {
		t := &l.p.Transitions[sys.Moves[k].Label]
		left -= weightAt(t.In, place)
		fewest = min(fewest, left)
		left += weightAt(t.Out, place)
	}
	return left, fewest
}

func weightAt(arcs []net.PetriArc, place int) int {
	sum := 0
	for _, a := range arcs {
		if a.Place == place {
			sum += a.Weight
		}
	}
	return sum
}

// analyzeMany verifies a net in which places begin with very many tokens. The search takes their number for unlimited,
// so every run of the net is one of the search, and a run of the search is one of the net as long as many tokens are
// left. So what never fires is dead, and a run to a deadlock or to improper completion counts if it is short enough.
// Nothing shows that the net is sound.
func (l *petriLowering) analyzeMany(lim statespace.Budget) *analysis {
	j := &analysis{late: lim.Late, limit: LimitTokens}
	j.sys, _ = l.system()
	x := statespace.NewSearch(j.sys, lim)
	x.NoOmega = true
	x.Run(min(lim.States, firstStates), min(lim.Bytes, fewBytes))
	if x.Improper >= 0 && !l.leavesMany(x.RunTo(x.Improper), j.sys) {
		x.Improper = -1
	}
	if x.Deadlock >= 0 && !l.leavesMany(x.RunTo(x.Deadlock), j.sys) {
		x.Deadlock = -1
	}
	x.Hopeless = -1
	j.search, j.states = x, x.States.Len()
	return j
}

// leavesMany reports whether the places with very many tokens hold more than any arc takes throughout a run. (The search
// does not count a place any more that the run has emptied.)
func (l *petriLowering) leavesMany(run []int32, sys *statespace.System) bool {
	enough := true
	l.many.Each(func(p int) {
		_, fewest := l.remaining(p, run, sys)
		enough = enough && fewest > mostWeight
	})
	return enough
}
