package net

import "slices"

// longRun is a violation that the search did not come to.
type longRun struct {
	moves   []int32 // of the exact game
	state   []uint8 // after them
	code    Code
	places  []int32 // the unsafe place, or those that grow
	repeats int     // so many of the last moves can be repeated for ever, and let the places grow
}

// probe tries single runs until one shows that something is wrong: first, if the rules of reduction could be applied, a
// run to what was found in the reduced net, and then runs at random. All together they may be as long as the search may
// look at states, and in a net with places that very many moves take from, shorter.
func (j *judgement) probe(l lowered, reducible bool, lim searchLimits) {
	p := &prober{j: j, w: newWalker(j.g)}
	p.w.allowed, p.w.most = lim.states, workPerStep*lim.states
	if reducible {
		p.follow = j.translated(l, lim)
	}
	atMost := 4*len(j.g.moves) + 1000
	for steps := lim.states; steps > 0 && j.run == nil && p.w.work < p.w.most; steps -= len(p.w.path) + 1 {
		if lim.late != nil && lim.late() {
			return
		}
		spent := j.g.spent()
		j.run = p.one(l, min(steps, atMost))
		steps -= j.g.spent() - spent
	}
}

// workPerStep is how much work a step of a run at random may be, on the average.
const workPerStep = 128

// prober makes runs.
type prober struct {
	j        *judgement
	w        *walker
	follow   [][]tracedMove // how the next runs begin
	searched int            // how often it was asked whether a state is hopeless
}

// one makes a run and says what it shows, if anything.
func (p *prober) one(l lowered, steps int) *longRun {
	p.w.restart()
	guesses := p.j.g.guesses()
	led := len(p.follow) > 0
	how, place := p.begin(l)
	if how == going && led && p.j.g.guesses() == guesses { // what was found in the reduced net may be a second token, and a third can follow
		if r := p.grown(); r != nil {
			return r
		}
	}
	if how == going {
		how, place = p.w.run(steps)
	}
	if p.j.g.guesses() > guesses && how != spilling && how != crowding {
		return nil // an or-join that was taken for waiting may not have to
	}
	switch how {
	case spilling:
		return p.shortest(how, ImproperCompletion, nil)
	case crowding:
		return p.shortest(how, Unsafe, []int32{place})
	case stopping:
		return p.shortest(how, NoOptionToComplete, nil)
	case growing, going:
		if r := p.grown(); r != nil {
			return r
		}
	}
	if p.searched++; how == going && p.searched <= maxSearched && p.j.hopeless(p.w.state) {
		return p.found(NoOptionToComplete, nil)
	}
	return nil
}

// maxSearched bounds how many states are asked whether a run from there can be completed.
const maxSearched = 3

func (p *prober) found(code Code, places []int32) *longRun {
	return &longRun{moves: slices.Clone(p.w.path), state: slices.Clone(p.w.state), code: code, places: places}
}

// begin makes the moves that the run is to begin with, as far as they can be made.
func (p *prober) begin(l lowered) (ended, int32) {
	if len(p.follow) == 0 {
		return going, -1
	}
	moves := p.follow[0]
	p.follow = p.follow[1:]
	byTask := make(map[int32][]int32)
	for i := range p.j.g.moves {
		t := p.j.g.moves[i].task
		byTask[t] = append(byTask[t], int32(i))
	}
	for at := range moves {
		k := p.next(l, moves[at:], byTask)
		if k < 0 {
			break
		}
		if how, place := p.w.take(k); how != going {
			return how, place
		}
	}
	return going, -1
}

// next finds the move of the exact game to make, and brings what it stands for to the front: the first one, or the
// first urgent one if an urgent move must come first.
func (p *prober) next(l lowered, moves []tracedMove, byTask map[int32][]int32) int32 {
	urgent := slices.ContainsFunc(p.w.ready[1], p.w.can)
	for i, t := range moves {
		for _, k := range byTask[l.taskOf(t)] {
			m := &p.j.g.moves[k]
			if p.w.at[k] < 0 || m.urgent != urgent || !l.matches(t, m) || !p.w.can(k) {
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

// hopeless reports whether no run from the state reaches completion: a small search, since most is over by then.
func (j *judgement) hopeless(state []uint8) bool {
	g := *j.g
	g.start, g.safe = state, false
	x := newExplorer(&g, searchLimits{states: maxHopeless, more: maxHopeless, bytes: fewBytes, late: j.late})
	x.run(g.spent()+maxHopeless, fewBytes)
	return x.conclusive() && len(x.final) == 0
}

const maxHopeless = 20_000

// translated looks for what is wrong in the reduced net, and tells the runs to it in terms of the net itself. What is
// wrong in the one need not be so in the other: they are ways to where something may be wrong.
func (j *judgement) translated(l lowered, lim searchLimits) [][]tracedMove {
	r, end := l.reducer(true)
	r.run()
	r.guessOrJoins()
	g, firings := r.game(end, true)
	if g == nil {
		return nil
	}
	x := newExplorer(g, lim)
	x.run(min(lim.states, fewStates), min(lim.bytes, fewBytes))
	var runs [][]tracedMove
	for _, run := range x.suspects() {
		moves := r.trace.unroll(nil, r.trace.start)
		for _, k := range run {
			moves = r.firing(moves, firings[g.moves[k].label])
		}
		runs = append(runs, moves)
	}
	return runs
}

// suspects lists runs to what a search has found.
func (x *explorer) suspects() [][]int32 {
	var runs [][]int32
	for _, state := range []int32{x.spilled, x.stuck, x.doomed} {
		if state >= 0 {
			runs = append(runs, x.runTo(state))
		}
	}
	for _, c := range x.crowds {
		runs = append(runs, append(x.runTo(c.state), c.move)) // a reduced net is not searched behind a second token
	}
	for _, p := range x.pumps {
		runs = append(runs, x.runTo(p.state))
	}
	return runs
}
