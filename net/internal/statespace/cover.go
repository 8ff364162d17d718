package statespace

import "github.com/tasq-dev/tasq/net"

// Goals are what an [Outlook] allows and no run has shown yet: moves that may fire, and places that may get a second
// token.
type Goals struct {
	moves  []bool // by move
	second net.Bits
	left   int // their number
}

// Unseen returns the goals that the search has not reached. Second tokens count if the system must be safe.
func (x *Search) Unseen(o *Outlook) *Goals {
	g := &Goals{moves: make([]bool, len(x.Fired)), second: net.NewBits(x.sys.Places)}
	for k, may := range o.Fires {
		if may && !x.Fired[k] {
			g.moves[k] = true
			g.left++
		}
	}
	if x.sys.Safe {
		o.Second.Each(func(p int) {
			if !x.sys.isOpen(int32(p)) && !x.isUnsafe.Has(p) {
				g.second.Add(p)
				g.left++
			}
		})
	}
	return g
}

// Reached reports whether there are no more goals.
func (g *Goals) Reached() bool { return g.left == 0 }

// note removes what a move and the state after it show.
func (g *Goals) note(m *Move, k int32, state []uint8) {
	if g.moves[k] {
		g.moves[k] = false
		g.left--
	}
	for _, a := range m.Out {
		if state[a.Place] > 1 && g.second.Has(int(a.Place)) {
			g.second.Remove(int(a.Place))
			g.left--
		}
	}
}

// The bounds of runs to goals: how many in a row may reach none, how many are tried for one goal, and how many steps a
// run has, by moves of the system.
const (
	maxFruitless = 4
	maxTries     = 12
	stepsByMove  = 2
)

// Pursue reaches goals by single runs: first by some that serve all goals, then by runs that are directed to one goal. It
// gives up when a goal is not reached, or after so much work. It returns the places that got a second token, in the
// order of their numbers.
func (g *Goals) Pursue(sys *System, most int) []int32 {
	before := g.second.Clone()
	h := &hunter{g: g, w: NewWalker(sys, 0, most)}
	for fruitless := 0; g.left > 0 && fruitless < maxFruitless && h.w.Work < most; fruitless++ {
		if h.run(h.anyGoal) {
			fruitless = -1
		}
	}
	h.each()
	var places []int32
	before.Each(func(p int) {
		if !g.second.Has(p) {
			places = append(places, int32(p))
		}
	})
	return places
}

// hunter makes runs to goals.
type hunter struct {
	g       *Goals
	w       *Walker
	into    [][]int32 // by place: the moves that put into it
	targets []Arc     // what the places are to hold for the goal of a run
	lacking int       // the number of targets that lack tokens, when the distances were computed
	dist    []int32   // by place: how many moves lead a token to a target that lacks tokens
	todo    []int32   // scratch
	try     int       // the number of runs to the same goal
}

// each makes runs to one goal after the other, until one is not reached.
func (h *hunter) each() {
	g, sys := h.g, h.w.sys
	if g.left == 0 {
		return
	}
	h.into, h.dist = sys.givers(), make([]int32, sys.Places)
	reached := true
	g.second.Clone().Each(func(p int) {
		reached = reached && h.hunt([]Arc{{Place: int32(p), Weight: 2}}, func() bool { return !g.second.Has(p) })
	})
	for k := range g.moves {
		reached = reached && h.hunt(sys.Moves[k].In, func() bool { return !g.moves[k] })
	}
}

// hunt makes runs that bring tokens to targets, until it is done.
func (h *hunter) hunt(targets []Arc, done func() bool) bool {
	h.targets = targets
	for h.try = 0; !done() && h.try < maxTries && h.w.Work < h.w.Most; h.try++ {
		h.lacking = -1
		h.run(h.closer)
	}
	return done()
}

// run makes one run, and reports whether it reached a goal.
func (h *hunter) run(choose func() int32) bool {
	w, before := h.w, h.g.left
	w.Restart()
	for range stepsByMove*len(w.sys.Moves) + 16 {
		k := choose()
		if k < 0 || h.g.left == 0 || w.ending() != Running || w.Step(k) >= 0 {
			break
		}
		h.g.note(&w.sys.Moves[k], k, w.State)
	}
	return h.g.left < before
}

// anyGoal picks a move that did not fire in any run, else one that leaves tokens where a second one is a goal.
func (h *hunter) anyGoal() int32 {
	return h.w.best(func(k int32) int {
		if h.g.moves[k] {
			return 0
		}
		for _, a := range h.w.sys.Moves[k].In {
			if h.w.State[a.Place] == 1 && h.g.second.Has(int(a.Place)) {
				return 2
			}
		}
		return 1
	})
}

// closer picks a move that brings a token as close as possible to where one is lacking, and leaves those that are there.
// Every further run to the same goal picks more moves at random: the shortest way may not be one that two tokens go.
func (h *hunter) closer() int32 {
	h.aim()
	random := h.w.rng.below(2*maxTries) < h.try
	return h.w.best(func(k int32) int {
		m := &h.w.sys.Moves[k]
		for _, a := range h.targets {
			if takes(m, a.Place) && h.w.State[a.Place] <= a.Weight && h.lacking > 0 {
				return farthest + 1
			}
		}
		if random {
			return h.w.rng.below(16)
		}
		nearest := farthest
		for _, a := range m.Out {
			nearest = min(nearest, int(h.dist[a.Place]))
		}
		return nearest
	})
}

func takes(m *Move, place int32) bool {
	for _, a := range m.In {
		if a.Place == place {
			return true
		}
	}
	return false
}

// farthest is the distance of places from which no way leads to a target.
const farthest = 1 << 20

// aim computes the distances, unless the same number of targets lacks tokens as before.
func (h *hunter) aim() {
	lacking := 0
	for _, a := range h.targets {
		if h.w.State[a.Place] < a.Weight {
			lacking++
		}
	}
	if lacking == h.lacking {
		return
	}
	h.lacking, h.todo = lacking, h.todo[:0]
	for p := range h.dist {
		h.dist[p] = farthest
	}
	for _, a := range h.targets {
		if h.w.State[a.Place] < a.Weight {
			h.dist[a.Place] = 0
			h.todo = append(h.todo, a.Place)
		}
	}
	for at := 0; at < len(h.todo); at++ {
		p := h.todo[at]
		for _, k := range h.into[p] {
			for _, a := range h.w.sys.Moves[k].In {
				if h.dist[a.Place] == farthest {
					h.dist[a.Place] = h.dist[p] + 1
					h.todo = append(h.todo, a.Place)
				}
			}
		}
	}
	h.w.Work += len(h.todo)
}

// best picks a move that can be made, of the lowest rank, and among equals one that was made less often. It returns -1 if
// there is none.
func (w *Walker) best(rank func(k int32) int) int32 {
	best, lowest := int32(-1), 0
	w.Work += len(w.ready[0])
	for _, k := range w.ready[0] {
		if !w.can(k) {
			continue
		}
		r := rank(k)
		if best < 0 || r < lowest || r == lowest && (w.uses[k] < w.uses[best] || w.uses[k] == w.uses[best] && w.rng.below(2) == 0) {
			best, lowest = k, r
		}
	}
	return best
}
