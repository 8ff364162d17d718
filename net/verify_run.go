package net

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
	limit  Limit
	states int         // looked at in all
	run    *longRun    // a violation that the search did not come to, if it found none
	late   func() bool // as in searchLimits
}

// judge verifies a net: by reduction first, and where that does not show it to be sound, by a search of the net as it
// is, which finds everything that is wrong and shortest runs to it. The watcher, if any, sees that search.
//
// A search that has found nothing in a moderate number of states may not come to an end, and what is wrong may lie too
// deep for it. So single runs are tried before it goes on: if one of them shows something, all that is left is to find
// a shorter.
func judge(l lowered, w watcher, lim searchLimits) *judgement {
	j := &judgement{late: lim.late}
	r, end := l.reducer(false)
	if r != nil {
		r.run()
		j.joins = r.joins
		if j.sound = j.provedBy(r, end, lim); j.sound {
			return j
		}
	}
	j.joins = nil
	if j.g, j.limit = l.game(); j.g == nil {
		return j
	}
	j.x = newExplorer(j.g, lim)
	j.x.watch = w
	j.x.run(min(lim.states, fewStates), fewBytes)
	if j.x.limit == LimitStates && !j.x.violated() {
		j.probe(l, r != nil, lim)
		bytes := maxArena
		if j.run != nil {
			bytes /= 4
		}
		j.x.resume(lim.states, bytes)
		if j.x.violated() {
			j.run = nil
		}
	}
	j.states += j.x.s.len()
	if j.x.limit != NoLimit {
		j.limit = j.x.limit
	}
	return j
}

// What a search may look at before single runs are tried.
const (
	fewStates = 20_000
	fewBytes  = 8 << 20
)

// provedBy reports whether the reduced net is sound and safe.
func (j *judgement) provedBy(r *reducer, end int32, lim searchLimits) bool {
	if r.oneTokenSound(end) {
		return true
	}
	g, _ := r.game(end, false)
	if g == nil {
		return false
	}
	x := newExplorer(g, lim)
	x.firstOnly = true
	x.run(lim.states, maxArena)
	j.states += x.s.len()
	return x.faultless()
}

// faultless reports whether the search was whole and found nothing wrong.
func (x *explorer) faultless() bool {
	if !x.exact() || x.violated() || x.doomed >= 0 {
		return false
	}
	for _, f := range x.fired {
		if !f {
			return false
		}
	}
	return true
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
