package net

import (
	"cmp"
	"slices"
)

// witness tells the run to a state of the exact search, which must show what is wrong. It is nil if counts were taken
// for unbounded on the way and no run of moderate length does the same.
func (f *findings) witness(x *explorer, to int32, shows func(state []uint8) bool) *Witness {
	moves := x.runTo(to)
	if len(x.pumps) > 0 {
		return f.unroll(x, x.s.path(to), moves, shows)
	}
	return f.tell(moves, f.state(x, to))
}

// state unpacks a state of the search.
func (f *findings) state(x *explorer, i int32) []uint8 {
	counts := make([]uint8, f.g.places)
	x.s.load(nil, i, counts)
	return counts
}

// unroll makes a run of a way on which counts were taken for unbounded: it goes round each such loop a few times, more
// and more often until the tokens suffice for the rest of the way. A later loop may live on what an earlier one piles
// up, so the earlier ones go round more often, by a power for each stage.
func (f *findings) unroll(x *explorer, path, moves []int32, shows func(state []uint8) bool) *Witness {
	loops := x.loopsOn(path)
	for base := range maxRounds {
		run := goRound(loops, moves, base)
		if len(run) > maxUnrolled {
			break
		}
		if state := f.play(run); state != nil && shows(state) {
			w := f.tell(run, state)
			w.Long = base > 0
			return w
		}
	}
	return nil
}

// A witness goes round loops for a moderate number of steps only.
const (
	maxRounds   = 12
	maxUnrolled = 2000
)

// roundOn is a loop on a way: the moves from one step of the way to a later one.
type roundOn struct{ from, to int }

// loopsOn lists the loops on a way, given as its states, that make counts unbounded, in the order of their ends. The
// pumps are in the order of their states, of which each has one.
func (x *explorer) loopsOn(path []int32) []roundOn {
	var loops []roundOn
	for i, state := range path {
		at, is := slices.BinarySearchFunc(x.pumps, state, func(p pump, state int32) int { return cmp.Compare(p.state, state) })
		if !is {
			continue
		}
		if from := slices.Index(path[:i], x.pumps[at].from); from >= 0 {
			loops = append(loops, roundOn{from, i})
		}
	}
	return loops
}

// goRound is the way with its loops: the last one as often as base says, the one before that base times as often.
func goRound(loops []roundOn, moves []int32, base int) []int32 {
	var run []int32
	done := 0
	for i, loop := range loops {
		run = append(run, moves[done:loop.to]...)
		done = loop.to
		times := 1
		for range len(loops) - i {
			times = min(times*base, maxUnrolled)
		}
		for n := 0; n < times && len(run) <= maxUnrolled; n++ {
			run = append(run, moves[loop.from:loop.to]...)
		}
	}
	return append(run, moves[done:]...)
}

// repeats reports whether the loop of a pump can be gone round on the way itself, each time adding to the place. It
// cannot if it lives on what an earlier loop has piled up.
func (f *findings) repeats(p pump, place int32) bool {
	path := f.x.s.path(p.state)
	run := f.x.runTo(p.state)
	loop := run[slices.Index(path, p.from):]
	before, after := f.play(run), f.play(append(slices.Clone(run), loop...))
	if before == nil || after == nil || after[place] <= before[place] {
		return false
	}
	for q := range f.g.places {
		if after[q] < before[q] {
			return false
		}
	}
	return true
}

// play makes the moves from the start, and returns the state they lead to, or nil if one of them is not possible.
func (f *findings) play(moves []int32) []uint8 {
	state := make([]uint8, f.g.places)
	copy(state, f.g.start)
	for _, k := range moves {
		m := &f.g.moves[k]
		if !f.g.enabled(m, state) {
			return nil
		}
		if f.g.play(m, state).over >= 0 {
			return nil
		}
	}
	return state
}

// tell puts a run into words.
func (f *findings) tell(moves []int32, state []uint8) *Witness {
	w := &Witness{Steps: make([]Step, 0, len(moves))}
	for _, k := range moves {
		w.Steps = append(w.Steps, f.step(&f.g.moves[k]))
	}
	for p := range int32(f.g.places) {
		switch c := state[p]; {
		case c == 0:
		case f.busy(p):
			w.Busy = append(w.Busy, f.place(p).Name)
		default:
			w.Marking = append(w.Marking, Tokens{Condition: f.place(p).Name, Count: int(c)})
		}
	}
	return w
}

func (f *findings) anything([]uint8) bool { return true }

func (f *findings) spills(state []uint8) bool {
	over, proper := f.g.complete(state)
	return over && !proper
}

func (f *findings) stops(state []uint8) bool {
	if over, _ := f.g.complete(state); over {
		return false
	}
	return !slices.ContainsFunc(f.g.moves, func(m gameMove) bool { return f.g.enabled(&m, state) })
}
