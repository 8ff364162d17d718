package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/reduce"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// foundRun is a violation that the search did not reach.
type foundRun struct {
	moves   []int32 // of the exact system
	state   []uint8 // after them
	code    net.Code
	places  []int32 // the unsafe place, or those that grow
	repeats int     // the number of last moves that can be repeated without end, and add to the places each time
}

// probe tries single runs until one shows a violation: first, if the reduction rules could be applied, a run to what
// was found in the reduced net, and then random walks. Their total length is bounded by the number of states that the
// search may explore, and is less in a net with places from which very many moves take.
func (j *analysis) probe(l lowering, reducible bool, lim statespace.Budget) {
	p := &prober{j: j, w: statespace.NewWalker(j.sys, lim.States, workPerStep*lim.States)}
	if reducible {
		p.follow = j.translated(l, lim)
	}
	atMost := 4*len(j.sys.Moves) + 1000
	for steps := lim.States; steps > 0 && j.run == nil && p.w.Work < p.w.Most; steps -= len(p.w.Path) + 1 {
		if lim.Late != nil && lim.Late() {
			return
		}
		spent := j.sys.Spent()
		j.run = p.one(l, min(steps, atMost))
		steps -= j.sys.Spent() - spent
	}
}

// workPerStep is the average amount of work that a step of a random walk may take.
const workPerStep = 128

// prober executes runs.
type prober struct {
	j        *analysis
	w        *statespace.Walker
	follow   [][]reduce.TracedMove // the beginnings of the next runs
	searched int                   // the number of states that were searched for a run that completes
}

// one executes a run, and returns the violation that it shows, if any.
func (p *prober) one(l lowering, steps int) *foundRun {
	p.w.Restart()
	undecided := p.j.sys.Undecided()
	led := len(p.follow) > 0
	how, place := p.begin(l)
	// What was found in the reduced net may be a second token, and a third can follow.
	if how == statespace.Running && led && p.j.sys.Undecided() == undecided {
		if r := p.grown(); r != nil {
			return r
		}
	}
	if how == statespace.Running {
		how, place = p.w.Run(steps)
	}
	if p.j.sys.Undecided() > undecided && how != statespace.CompletedImproperly && how != statespace.SecondTokenReached {
		return nil // an or-join that was assumed to wait may not have to
	}
	switch how {
	case statespace.CompletedImproperly:
		return p.shortest(how, ImproperCompletion, nil)
	case statespace.SecondTokenReached:
		return p.shortest(how, Unsafe, []int32{place})
	case statespace.Deadlocked:
		return p.shortest(how, NoOptionToComplete, nil)
	case statespace.Overflowed, statespace.Running:
		if r := p.grown(); r != nil {
			return r
		}
	}
	if p.searched++; how == statespace.Running && p.searched <= maxSearched && p.j.cannotComplete(p.w.State) {
		return p.found(NoOptionToComplete, nil)
	}
	return nil
}

// maxSearched bounds the number of states that are searched for a run that completes.
const maxSearched = 3

// found returns a violation of the current run.
func (p *prober) found(code net.Code, places []int32) *foundRun {
	return &foundRun{moves: slices.Clone(p.w.Path), state: slices.Clone(p.w.State), code: code, places: places}
}

// begin executes the given first moves of the run, as far as possible.
func (p *prober) begin(l lowering) (statespace.Ending, int32) {
	if len(p.follow) == 0 {
		return statespace.Running, -1
	}
	moves := p.follow[0]
	p.follow = p.follow[1:]
	byTask := make(map[int32][]int32)
	for i := range p.j.sys.Moves {
		t := p.j.sys.Moves[i].Task
		byTask[t] = append(byTask[t], int32(i))
	}
	for at := range moves {
		k := p.next(l, moves[at:], byTask)
		if k < 0 {
			break
		}
		if how, place := p.w.Take(k); how != statespace.Running {
			return how, place
		}
	}
	return statespace.Running, -1
}

// next finds the move of the exact system to execute, and moves what it represents to the front: the first one, or the
// first urgent one if an urgent move must come first.
func (p *prober) next(l lowering, moves []reduce.TracedMove, byTask map[int32][]int32) int32 {
	urgent := p.w.UrgentEnabled()
	for i, t := range moves {
		for _, k := range byTask[l.taskOf(t)] {
			m := &p.j.sys.Moves[k]
			if m.Urgent != urgent || !l.matches(t, m) || !p.w.Enabled(k) {
				continue
			}
			copy(moves[1:i+1], moves[:i])
			return k
		}
		if !urgent {
			break
		}
	}
	return -1
}

// cannotComplete reports whether no run from the state completes. A small search suffices, since few moves are left in
// most such states.
func (j *analysis) cannotComplete(state []uint8) bool {
	sys := *j.sys
	sys.Start, sys.Safe = state, false
	x := statespace.NewSearch(&sys, statespace.Budget{States: maxHopeless, MoreStates: maxHopeless, Bytes: fewBytes, Late: j.late})
	x.Run(sys.Spent()+maxHopeless, fewBytes)
	return x.Conclusive() && len(x.Final) == 0
}

// maxHopeless bounds the states of that search.
const maxHopeless = 20_000

// translated looks for violations in the reduced net, and translates the runs to them to runs of the net. A violation
// of the reduced net need not be one of the net: the runs lead to places where something may be wrong.
func (j *analysis) translated(l lowering, lim statespace.Budget) [][]reduce.TracedMove {
	r, end := l.reducible(true)
	r.Run()
	r.AssumeOrJoins()
	sys, firings := r.System(end, true)
	if sys == nil {
		return nil
	}
	x := statespace.NewSearch(sys, lim)
	x.Run(min(lim.States, fewStates), min(lim.Bytes, fewBytes))
	var runs [][]reduce.TracedMove
	for _, run := range x.Suspects() {
		moves := r.Prefix()
		for _, k := range run {
			moves = r.Firing(moves, firings[sys.Moves[k].Label])
		}
		runs = append(runs, moves)
	}
	return runs
}
