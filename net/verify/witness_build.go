package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// witness returns the run to a state of the search, which must show the violation. It is nil if counts were taken for
// unbounded on the way, and no run of moderate length has the same effect.
func (f *findings) witness(x *statespace.Search, to int32, shows func(state []uint8) bool) *Witness {
	moves := x.RunTo(to)
	if len(x.Coverings) > 0 {
		return f.repeatLoops(x, x.States.Path(to), moves, shows)
	}
	return f.toWitness(moves, f.state(x, to))
}

// state unpacks a state of the search.
func (f *findings) state(x *statespace.Search, i int32) []uint8 {
	counts := make([]uint8, f.sys.Places)
	x.States.Load(nil, i, counts)
	return counts
}

// repeatLoops turns a path on which counts were taken for unbounded into a run: it repeats each such loop, with
// increasing numbers of repetitions until the tokens suffice for the rest of the path. A later loop may use tokens that
// an earlier one has piled up, so earlier loops are repeated more often, by a power for each stage.
func (f *findings) repeatLoops(x *statespace.Search, path, moves []int32, shows func(state []uint8) bool) *Witness {
	loops := x.LoopsOn(path)
	for base := range maxRepeats {
		run := repeatRun(loops, moves, base)
		if len(run) > maxRepeatedSteps {
			break
		}
		if state := f.play(run); state != nil && shows(state) {
			w := f.toWitness(run, state)
			w.Long = base > 0
			return w
		}
	}
	return nil
}

// A witness repeats loops only for a moderate number of steps.
const (
	maxRepeats       = 12
	maxRepeatedSteps = 2000
)

// repeatRun returns the path with its loops repeated: the last one base times, the one before it base² times, and so on.
func repeatRun(loops []statespace.Loop, moves []int32, base int) []int32 {
	var run []int32
	done := 0
	for i, loop := range loops {
		run = append(run, moves[done:loop.To]...)
		done = loop.To
		times := 1
		for range len(loops) - i {
			times = min(times*base, maxRepeatedSteps)
		}
		for n := 0; n < times && len(run) <= maxRepeatedSteps; n++ {
			run = append(run, moves[loop.From:loop.To]...)
		}
	}
	return append(run, moves[done:]...)
}

// repeats reports whether the loop of a covering can be repeated on the run itself, each time adding to the place. It
// cannot if it uses tokens that an earlier loop has piled up.
func (f *findings) repeats(p statespace.Covering, place int32) bool {
	path := f.search.States.Path(p.State)
	run := f.search.RunTo(p.State)
	loop := run[slices.Index(path, p.Ancestor):]
	before, after := f.play(run), f.play(append(slices.Clone(run), loop...))
	if before == nil || after == nil || after[place] <= before[place] {
		return false
	}
	for q := range f.sys.Places {
		if after[q] < before[q] {
			return false
		}
	}
	return true
}

// play executes moves from the initial state, and returns the final state; nil if one of them is not possible.
func (f *findings) play(moves []int32) []uint8 {
	state := make([]uint8, f.sys.Places)
	copy(state, f.sys.Start)
	for _, k := range moves {
		m := &f.sys.Moves[k]
		if !f.sys.Enabled(m, state) {
			return nil
		}
		if f.sys.Fire(m, state).Overflow >= 0 {
			return nil
		}
	}
	return state
}

// toWitness converts a run to a witness.
func (f *findings) toWitness(moves []int32, state []uint8) *Witness {
	w := &Witness{Steps: make([]Step, 0, len(moves))}
	for _, k := range moves {
		w.Steps = append(w.Steps, f.step(&f.sys.Moves[k]))
	}
	for p := range int32(f.sys.Places) {
		switch c := state[p]; {
		case c == 0 && f.tokens(p, c, moves, f.sys) == 0:
		case f.busy(p):
			w.Busy = append(w.Busy, f.place(p).Name)
		default:
			w.Marking = append(w.Marking, Tokens{Condition: f.place(p).Name, Count: f.tokens(p, c, moves, f.sys)})
		}
	}
	return w
}

func (f *findings) anyState([]uint8) bool { return true }

func (f *findings) completesImproperly(state []uint8) bool {
	over, proper := f.sys.Complete(state)
	return over && !proper
}

func (f *findings) deadlocks(state []uint8) bool {
	if over, _ := f.sys.Complete(state); over {
		return false
	}
	return !slices.ContainsFunc(f.sys.Moves, func(m statespace.Move) bool { return f.sys.Enabled(&m, state) })
}
