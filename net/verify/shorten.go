package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// shortest removes unnecessary parts from the run, of ever smaller sizes, within a budget (delta debugging).
func (p *prober) shortest(how statespace.Ending, code net.Code, places []int32) *foundRun {
	best := p.found(code, places)
	end, spent := p.w.Work+maxShortening, p.j.sys.Spent()
	for size := max(len(best.moves)/2, 1); size > 0; {
		before := len(best.moves)
		for at := before - size; at >= 0; at -= size {
			if end-p.w.Work < workPerState*(p.j.sys.Spent()-spent) {
				return best
			}
			if at+size <= len(best.moves) && p.replay(best.moves[:at], best.moves[at+size:]) == how {
				best = p.found(code, places)
			}
		}
		if len(best.moves) == before {
			size /= 2
		} else {
			size = max(1, min(size, len(best.moves)/2))
		}
	}
	return best
}

// maxShortening bounds the work of shortening a run, see [statespace.Walker].
const maxShortening = 2_000_000

// replay executes the moves of two lists, one after the other, and returns how that ended: Running if a move was not
// possible.
func (p *prober) replay(lists ...[]int32) statespace.Ending {
	w := p.w
	w.Restart()
	for _, list := range lists {
		for _, k := range list {
			m := &p.j.sys.Moves[k]
			if !m.Urgent && w.UrgentEnabled() || !w.Enabled(k) {
				return statespace.Running
			}
			if how, _ := w.Take(k); how != statespace.Running {
				return how
			}
		}
	}
	undecided := p.j.sys.Undecided()
	if w.Choose() < 0 && p.j.sys.Undecided() == undecided {
		return statespace.Deadlocked
	}
	return statespace.Running
}

// grown looks for an earlier state of the run that its last state covers, and from which the run can be repeated
// without end. If there is none, it leaves the run as it is.
func (p *prober) grown() *foundRun {
	path := slices.Clone(p.w.Path)
	if p.replay(path) == statespace.Overflowed {
		path = path[:len(path)-1] // the last move was not executed, since the count of a place would overflow
		p.replay(path)
	}
	last := slices.Clone(p.w.State)
	froms := p.below(path, last)
	for tries := range min(len(froms), statespace.MaxCoverings) {
		from := froms[len(froms)-1-tries]
		p.w.Restart()
		for _, k := range path[:from] {
			p.w.Step(k)
		}
		var places []int32
		for q, c := range last {
			if c > p.w.State[q] {
				places = append(places, int32(q))
			}
		}
		if !p.repeatable(path[from:], places) {
			continue
		}
		if p.replay(path, path[from:]) == statespace.Overflowed { // once more, so that there are several tokens, unless a count would overflow
			p.replay(path)
			places = slices.DeleteFunc(places, func(q int32) bool { return p.w.State[q] < 2 })
		}
		if len(places) == 0 {
			continue
		}
		run := p.found(Unbounded, places)
		run.repeats = len(path) - from
		return run
	}
	p.replay(path)
	return nil
}

// below returns the states of a run, as numbers of moves, in which no place has more tokens than in the last one.
func (p *prober) below(path []int32, last []uint8) []int {
	p.w.Restart()
	beyond := 0 // the number of places with more tokens
	for q, c := range last {
		if p.w.State[q] > c {
			beyond++
		}
	}
	p.w.OnChange = func(q int32, old, now uint8) {
		switch {
		case old <= last[q] && now > last[q]:
			beyond++
		case old > last[q] && now <= last[q]:
			beyond--
		}
	}
	var froms []int
	for i, k := range path {
		if beyond == 0 {
			froms = append(froms, i)
		}
		p.w.Step(k)
	}
	p.w.OnChange = nil
	return froms
}

// repeatable reports whether moves have the same effect with more tokens: no decision on the way depends on the number
// of tokens, and no move tests for an empty place.
func (p *prober) repeatable(moves []int32, places []int32) bool {
	sys := p.j.sys
	return len(places) > 0 && !slices.ContainsFunc(places, func(q int32) bool { return p.j.search.Tested.Has(int(q)) }) &&
		!slices.ContainsFunc(moves, func(k int32) bool { return sys.Disturbs(&sys.Moves[k], places) })
}
