package net

import "slices"

// shortest leaves out of the run that was made what it can do without, ever smaller parts of it, within a budget.
func (p *prober) shortest(how ended, code Code, places []int32) *longRun {
	best := p.found(code, places)
	end, spent := p.w.work+maxShortening, p.j.g.spent()
	for size := max(len(best.moves)/2, 1); size > 0; {
		before := len(best.moves)
		for at := before - size; at >= 0; at -= size {
			if end-p.w.work < workPerState*(p.j.g.spent()-spent) {
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

// maxShortening bounds the work of making a run shorter, see [walker].
const maxShortening = 2_000_000

// replay makes the moves of two lists, one after the other, and says how that ended: going if they cannot be made.
func (p *prober) replay(lists ...[]int32) ended {
	w := p.w
	w.restart()
	for _, list := range lists {
		for _, k := range list {
			m := &p.j.g.moves[k]
			if w.at[k] < 0 || !m.urgent && slices.ContainsFunc(w.ready[1], w.can) || !w.can(k) {
				return going
			}
			if how, _ := w.take(k); how != going {
				return how
			}
		}
	}
	guesses := p.j.g.guesses()
	if w.choose() < 0 && p.j.g.guesses() == guesses {
		return stopping
	}
	return going
}

// grown looks for an earlier state of the run that holds no more anywhere and less somewhere, from where the run can be
// repeated for ever. If there is none, the run stays as it is.
func (p *prober) grown() *longRun {
	path := slices.Clone(p.w.path)
	if p.replay(path) == growing {
		path = path[:len(path)-1] // it was not made whole, for a place would hold more than can be counted
		p.replay(path)
	}
	last := slices.Clone(p.w.state)
	froms := p.below(path, last)
	for tries := range min(len(froms), maxPumpTries) {
		from := froms[len(froms)-1-tries]
		p.w.restart()
		for _, k := range path[:from] {
			p.w.step(k)
		}
		var places []int32
		for q, c := range last {
			if c > p.w.state[q] {
				places = append(places, int32(q))
			}
		}
		if !p.repeatable(path[from:], places) {
			continue
		}
		if p.replay(path, path[from:]) == growing { // once more, so that there are several tokens, unless that is too many
			p.replay(path)
			places = slices.DeleteFunc(places, func(q int32) bool { return p.w.state[q] < 2 })
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

// below lists the states of a run, as numbers of moves, that hold nowhere more than the last one.
func (p *prober) below(path []int32, last []uint8) []int {
	p.w.restart()
	beyond := 0 // places that hold more
	for q, c := range last {
		if p.w.state[q] > c {
			beyond++
		}
	}
	p.w.change = func(q int32, old, now uint8) {
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
		p.w.step(k)
	}
	p.w.change = nil
	return froms
}

// repeatable reports whether moves do the same when the places hold more: nothing on the way depends on what they hold,
// and nobody asks whether they are empty.
func (p *prober) repeatable(moves []int32, places []int32) bool {
	g := p.j.g
	return len(places) > 0 && !slices.ContainsFunc(places, func(q int32) bool { return p.j.x.touchy.Has(int(q)) }) &&
		!slices.ContainsFunc(moves, func(k int32) bool { return g.disturbs(&g.moves[k], places) })
}
