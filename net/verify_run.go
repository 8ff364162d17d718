package net

import "slices"

// lowered is a net in the form that verification works on.
type lowered interface {
	// reducer makes the net for the reduction rules, and says which place holds the last token (-1: none must be left
	// anywhere). It is nil if the rules would not preserve what this net means. With a trace, what is left of the net
	// can be translated back.
	reducer(traced bool) (r *reducer, end int32)
	// game makes the net for the search that is exact, or says why there is none.
	game() (*game, Limit)
	// taskOf is the task or transition of a traced move.
	taskOf(t tracedMove) int32
	// matches reports whether a move of the exact game is what a traced move stands for.
	matches(t tracedMove, m *gameMove) bool
}

// judgement is what verification found before it is put into words.
type judgement struct {
	sound  bool          // shown to be sound by reduction; nothing below is set but states and joins
	joins  []removedJoin // or-joins that reduction saw through
	g      *game
	x      *explorer
	also   []*explorer // searches that found what x has not come to
	limit  Limit
	states int         // looked at in all
	run    *longRun    // a violation that the search did not come to, if it found none
	dead   []int32     // tasks that reduction has shown can never start, and that nothing else is wrong
	late   func() bool // as in searchLimits
}

// judge verifies a net: by reduction first, and where that does not show it to be sound, by a search of the net as it
// is, which finds everything that is wrong and shortest runs to it. The watcher, if any, sees that search.
//
// A search that has found nothing in a moderate number of states may not come to an end, and what is wrong may lie too
// deep for it. So a search that leaves out moves is tried before it goes on, and then single runs. Once anything is
// found, the search of all states goes on for the rest, as far as the limits for that allow.
func judge(l lowered, w watcher, lim searchLimits) *judgement {
	j := &judgement{late: lim.late}
	r, end := l.reducer(false)
	if r != nil {
		plain := r.plain()
		r.run()
		j.joins = r.joins
		if j.sound = r.oneTokenSound(end); j.sound {
			return j
		}
		var x *explorer
		var firings []reducedFiring
		if !r.unsafe {
			x, firings = j.reduced(r, end, lim)
		}
		switch {
		case x == nil:
		case x.faultless():
			j.sound = true
			return j
		case plain && x.alwaysCompletes():
			j.dead = x.neverFired(l, r, firings)
		}
	}
	j.joins = nil
	if j.g, j.limit = l.game(); j.g == nil {
		return j
	}
	j.x = newExplorer(j.g, lim)
	j.x.watch, j.x.behind = w, true
	j.x.run(min(lim.states, firstStates), min(lim.bytes, fewBytes))
	if j.x.undecided() && j.dead == nil && !j.spared(lim) {
		j.lookElsewhere(l, r != nil, lim)
	}
	if j.x.limit != NoLimit {
		j.x.resume(lim.states, lim.bytes)
	}
	j.sparedBehind(lim)
	j.states += j.x.s.len()
	if j.limit = j.x.limit; j.limit == NoLimit && !j.x.settled() {
		if j.limit = LimitGrowth; j.countOn(lim) {
			j.limit = NoLimit
		}
	}
	return j
}

// What a search may look at before one that leaves out moves is tried, and before single runs are.
const (
	firstStates = 2000
	fewStates   = 20_000
	fewBytes    = 8 << 20
	moreSparing = 5000 // by a search that leaves out moves, once something is found
)

// undecided reports whether the search found nothing and has not come to an end.
func (x *explorer) undecided() bool {
	return (x.limit == LimitStates || x.limit == LimitMemory) && !x.violated()
}

// spared looks for a run that gets stuck or completes improperly by a search that leaves out moves, and reports whether
// it found one, and nothing that makes its runs doubtful as shortest ones.
func (j *judgement) spared(lim searchLimits) bool {
	x := spare(j.g, lim)
	if x == nil {
		return false
	}
	j.states += x.s.len()
	if x.stuck < 0 && x.spilled < 0 || len(x.crowds)+len(x.pumps) > 0 {
		return false
	}
	j.foundElsewhere(lim)
	j.also = append(j.also, x)
	return true
}

// sparedBehind looks for such a run behind second tokens, where the search of all states found those and ended before it
// came to a run that gets stuck. It counts on, so that a run leads to every state, and its second tokens are findings too.
func (j *judgement) sparedBehind(lim searchLimits) {
	if j.x.limit == NoLimit || len(j.x.crowds) == 0 || j.x.stuck >= 0 || len(j.also) > 0 {
		return
	}
	x := sparing(j.g, lim)
	if x == nil {
		return
	}
	x.behind, x.counting = true, true
	x.run(min(lim.states, moreSparing), min(lim.bytes, fewBytes))
	j.states += x.s.len()
	j.also = append(j.also, x)
}

// foundElsewhere has the search of all states end soon.
func (j *judgement) foundElsewhere(lim searchLimits) { j.x.stop = j.x.s.len() + j.g.spent() + lim.more }

// spare searches a game without the moves that can be left out; nil if the game is of a kind where none can.
func spare(g *game, lim searchLimits) *explorer {
	x := sparing(g, lim)
	if x != nil {
		x.run(min(lim.states, fewStates), min(lim.bytes, fewBytes))
	}
	return x
}

// sparing makes that search.
func sparing(g *game, lim searchLimits) *explorer {
	left := newStubborn(g)
	if left == nil {
		return nil
	}
	x := newExplorer(g, lim)
	x.sparing = left
	return x
}

// lookElsewhere goes on with the search for a while, and then tries single runs.
func (j *judgement) lookElsewhere(l lowered, reducible bool, lim searchLimits) {
	j.x.resume(min(lim.states, fewStates), min(lim.bytes, fewBytes))
	if !j.x.undecided() {
		return
	}
	if j.probe(l, reducible, lim); j.run != nil {
		j.foundElsewhere(lim)
	}
}

// countOn looks for a state that is stuck where the search has taken counts for unbounded: one with few tokens may be,
// though one with many is not. It reports whether everything is found by that.
func (j *judgement) countOn(lim searchLimits) bool {
	if !j.x.exact() {
		return false
	}
	x := newExplorer(j.g, lim)
	x.counting, x.behind, x.stop = true, true, lim.more
	x.run(min(lim.states, lim.more), lim.bytes)
	j.states += x.s.len()
	x.crowds, x.spilled = nil, -1
	j.also = append(j.also, x)
	return x.stuck >= 0
}

// reduced searches what reduction has left of the net, up to the first thing that is wrong there.
func (j *judgement) reduced(r *reducer, end int32, lim searchLimits) (*explorer, []reducedFiring) {
	g, firings := r.game(end, false)
	if g == nil {
		return nil, nil
	}
	x := newExplorer(g, lim)
	x.firstOnly = true
	x.run(min(lim.states, firstStates), min(lim.bytes, fewBytes))
	if x.undecided() {
		if y := spare(g, lim); y != nil {
			j.states += y.s.len()
			if y.violated() {
				return nil, nil
			}
		}
		x.resume(lim.states, lim.bytes)
	}
	j.states += x.s.len()
	return x, firings
}

// faultless reports whether the search was whole and found nothing wrong.
func (x *explorer) faultless() bool { return x.alwaysCompletes() && !slices.Contains(x.fired, false) }

// alwaysCompletes reports whether the search was whole and found nothing wrong but moves that never fire.
func (x *explorer) alwaysCompletes() bool { return x.exact() && !x.violated() && x.doomed < 0 }

// neverFired lists the tasks that can never start because a transition of the reduced net can never fire.
//
// Without or-joins and resets, the rules of reduction work both ways: to every run of the net belongs one of the reduced
// net, in which a transition that is left fires whenever the one fires that it was at first. (Whatever it has taken over
// comes behind that.) So if it never fires in the reduced net, neither does that one in the net itself.
func (x *explorer) neverFired(l lowered, r *reducer, firings []reducedFiring) []int32 {
	fired := NewBits(len(r.trans))
	for k, yes := range x.fired {
		if yes {
			fired.Add(int(firings[k].trans))
		}
	}
	var tasks []int32
	for i := range r.trans {
		if tr := &r.trans[i]; !tr.dead && !fired.Has(i) {
			tasks = append(tasks, l.taskOf(tracedMove{label: tr.label}))
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// runTo lists the moves to a state.
func (x *explorer) runTo(state int32) []int32 {
	path := x.s.path(state)
	moves := make([]int32, 0, len(path))
	for _, i := range path[1:] {
		moves = append(moves, x.s.via[i])
	}
	return moves
}
