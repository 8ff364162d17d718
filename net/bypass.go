package net

import "slices"

// Bypass finds a run that comes to a task, or to the end of the case if to is negative, without another task having
// completed: the one that gives what the former reads. In a net where a reader can be passed on the left of
// its writer,
//
//	start -> write -> read -> end
//	start -> hurry -> read
//
// it is the run "hurry". It returns a shortest one, after which the task to can start (or the case is complete); nil if there is
// none, or if none was found within the budget. The states are those of [Verify], and so is the meaning of the options,
// of which only States, Time and Now count here.
func Bypass(n *Net, task, to TaskID, opts VerifyOptions) *Witness {
	if n.dominates(task, to) {
		return nil
	}
	l := &netLowering{n: n, moments: newMoments(n)}
	g, _ := l.game()
	if g == nil {
		return nil
	}
	arrived := l.arrival(g, to)
	g.moves = slices.DeleteFunc(g.moves, func(m gameMove) bool {
		return TaskID(m.task) == task && l.moves[m.label].moment != Starts
	})
	g.index()
	lim := opts.limits(defaultStates)
	x := newExplorer(g, lim)
	x.run(lim.states, maxArena)
	f := findings{named: l, judgement: &judgement{g: g, x: x}}
	for i := range int32(x.s.len()) {
		if !arrived(f.state(i)) {
			continue
		}
		run := x.runTo(i)
		if end := f.play(run); end != nil && arrived(end) { // not so if tokens pile up on the way
			return f.tell(run, end)
		}
	}
	return nil
}

// arrival returns what tells the states in which a task can start, or the case is complete if the task is negative.
func (l *netLowering) arrival(g *game, to TaskID) func(state []uint8) bool {
	starts := slices.DeleteFunc(slices.Clone(g.moves), func(m gameMove) bool {
		return TaskID(m.task) != to || l.moves[m.label].moment == Completes
	})
	return func(state []uint8) bool {
		if over, _ := g.complete(state); over || to < 0 {
			return over && to < 0
		}
		return slices.ContainsFunc(starts, func(m gameMove) bool { return g.enabled(&m, state) })
	}
}

// dominates reports whether all ways from the start to a task, or to the end if to is negative, lead through another task:
// then a token can only come there once that one has completed.
func (n *Net) dominates(task, to TaskID) bool {
	seen := NewBits(len(n.conditions))
	for todo := []ConditionID{n.start}; len(todo) > 0; {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen.Has(int(c)) {
			continue
		}
		seen.Add(int(c))
		for _, t := range n.Consumers(c) {
			if t == to {
				return false
			}
			if t != task {
				todo = append(todo, n.tasks[t].outputs...)
			}
		}
	}
	return to >= 0 || !seen.Has(int(n.end))
}
