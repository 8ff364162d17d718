package net

import "slices"

// lowered is a net in the form that verification works on.
type lowered interface {
	// reducer makes the net for the reduction rules, and says which place holds the last token (-1: none must be left
	// anywhere). It is nil if the rules would not preserve what this net means. With a trace, what is left of the net can
	// be translated back.
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
	sound bool          // shown to be sound by reduction; nothing below is set but states and joins
	joins []removedJoin // or-joins that reduction saw through
	g     *game
	x     *explorer
	limit Limit
	// states were looked at in all. The run, if set, is one that the exact search could not reach within its budget;
	// why is what it shows.
	states int
	run    *longRun
	late   func() bool // as in searchLimits
}

// longRun is a violation that was found in the reduced net and translated back.
type longRun struct {
	moves []int32 // of the exact game
	state []uint8 // after them
	code  Code
	place int32   // of an unsafe place
	dead  []int32 // tasks none of whose moves can be made, for a dead-task
}

// judge verifies a net: by reduction first, and where that does not show it to be sound, by a search of the net as it is,
// which finds everything that is wrong and shortest runs to it. The watcher, if any, sees that search.
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
	j.x.run()
	j.states += j.x.s.len()
	j.limit = j.x.limit
	if r != nil && j.limit != NoLimit && !j.x.violated() {
		j.translate(l, lim)
	}
	return j
}

// provedBy reports whether the reduced net is sound and safe.
func (j *judgement) provedBy(r *reducer, end int32, lim searchLimits) bool {
	if r.oneTokenSound(end) {
		return true
	}
	g, _ := r.game(end)
	if g == nil {
		return false
	}
	x := newExplorer(g, lim)
	x.firstOnly = true
	x.run()
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

// translate looks for a violation in the reduced net, however the search of the net itself ended, and plays the run to it in
// the net itself.
func (j *judgement) translate(l lowered, lim searchLimits) {
	r, end := l.reducer(true)
	r.run()
	g, firings := r.game(end)
	if g == nil {
		return
	}
	x := newExplorer(g, lim)
	x.firstOnly = true
	x.run()
	run, code := x.worst()
	if code == "" {
		return
	}
	moves := r.trace.unroll(nil, r.trace.start)
	for _, k := range run {
		moves = r.firing(moves, firings[g.moves[k].label])
	}
	j.run = j.replay(l, moves, code)
}

// worst is the run to the first violation of a search, and what is wrong there; an empty code if nothing is.
func (x *explorer) worst() ([]int32, Code) {
	switch {
	case x.spilled >= 0:
		return x.runTo(x.spilled), ImproperCompletion
	case x.crowd.state >= 0:
		return append(x.runTo(x.crowd.state), x.crowd.move), Unsafe
	case x.stuck >= 0:
		return x.runTo(x.stuck), NoOptionToComplete
	case x.doomed >= 0:
		return x.runTo(x.doomed), NoOptionToComplete
	}
	return nil, ""
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

// replay plays the moves in the exact game. Whatever the reduced net showed, only what is seen here counts.
func (j *judgement) replay(l lowered, moves []tracedMove, code Code) *longRun {
	run := &longRun{code: code, place: -1, state: make([]uint8, j.g.places)}
	copy(run.state, j.g.start)
	byTask := make(map[int32][]int32)
	for i := range j.g.moves {
		t := j.g.moves[i].task
		byTask[t] = append(byTask[t], int32(i))
	}
	for at := range moves {
		k := j.next(l, moves[at:], run.state, byTask)
		if k < 0 {
			return nil
		}
		run.moves = append(run.moves, k)
		out := j.g.play(&j.g.moves[k], run.state)
		over, proper := j.g.complete(run.state)
		switch {
		case out.over >= 0:
			return nil
		case j.g.safe && out.crowded >= 0:
			run.code, run.place = Unsafe, out.crowded
			return run
		case over && !proper:
			run.code = ImproperCompletion
			return run
		}
	}
	if code != NoOptionToComplete || !j.hopeless(run.state) {
		return nil
	}
	return run
}

// next finds the move of the exact game to make, and brings what it stands for to the front: the first one, or the first
// urgent one if an urgent move must come first.
func (j *judgement) next(l lowered, moves []tracedMove, state []uint8, byTask map[int32][]int32) int32 {
	urgent := j.g.urgentAt && slices.ContainsFunc(j.g.moves, func(m gameMove) bool {
		return m.urgent && j.g.enabled(&m, state)
	})
	for i, t := range moves {
		for _, k := range byTask[l.taskOf(t)] {
			m := &j.g.moves[k]
			if m.urgent != urgent || !l.matches(t, m) || !j.g.enabled(m, state) {
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
	x := newExplorer(&g, searchLimits{states: maxHopeless, more: maxHopeless, late: j.late})
	x.run()
	return x.exact() && len(x.final) == 0
}

const maxHopeless = 20_000
