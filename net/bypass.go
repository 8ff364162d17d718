package net

import "slices"

// Bypass finds a run that comes to a task, or to the end of the case if to is negative, without another task having
// completed: the one that gives what the former reads. In a net where a way leads past the writer,
//
//	start -> write -> read -> end
//	start -> hurry -> read
//
// it is the run "hurry". A task that may complete without an output, as after a time that is over, can be passed so, too:
// without lists the outputs, by their index in flow order, that get tokens then; nil if the task always has an output.
//
// It returns a shortest one, after which the task to is enabled (or the case is complete); nil
// if there is none, and whether that is decided: not if the budget ran out. The states are those of [Verify], and so is the meaning
// of the options, of which only States, Time and Now count here.
func Bypass(n *Net, task, to TaskID, without []int, opts VerifyOptions) (run *Witness, decided bool) {
	if dominates(n, task, to, without) {
		return nil, true
	}
	l := &netLowering{n: n, moments: newMoments(n)}
	g, _ := l.game()
	if g == nil {
		return nil, false
	}
	arrived := l.arrival(g, to)
	g.moves = slices.DeleteFunc(g.moves, func(m gameMove) bool {
		return TaskID(m.task) == task && l.moves[m.label].moment != Starts && !l.moves[m.label].within(without)
	})
	g.index()
	lim := opts.limits(defaultStates)
	lim.more = lim.states // what is held up gets stuck, which says nothing of the rest
	x := newExplorer(g, lim)
	f := findings{named: l, judgement: &judgement{g: g, x: x}}
	next := int32(0)
	for states := min(lim.states, firstLook); ; states = min(lim.states, 4*states) {
		if next == 0 {
			x.run(states, lim.bytes)
		} else {
			x.resume(states, lim.bytes)
		}
		for ; next < int32(x.s.len()); next++ {
			if !arrived(f.state(x, next)) {
				continue
			}
			run := x.runTo(next)
			if end := f.play(run); end != nil && arrived(end) { // not so if tokens pile up on the way
				return f.tell(run, end), true
			}
		}
		if x.limit != LimitStates || states == lim.states {
			return nil, x.limit == NoLimit && l.undecided == 0
		}
	}
}

// within reports whether a completion puts its tokens into some of these outputs only.
func (m *netMove) within(outputs []int) bool {
	switch {
	case m.output >= 0:
		return slices.Contains(outputs, int(m.output))
	case m.chosen != 0:
		rest := m.chosen
		for _, i := range outputs {
			rest &^= 1 << i
		}
		return rest == 0
	}
	return len(outputs) > 0
}

// firstLook is how many states there are at the first look for an arrival. Each further look is at four times as many.
const firstLook = 256

// arrival returns what tells the states in which a task is enabled, or the case is complete if the task is negative. A
// task is enabled even if a routing task is to run first that may disable it again: which one is tried first is a
// matter of the order of flows.
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

// dominates reports whether a token can only come to a task, or to the end if to is negative, once another task has
// completed: whether nothing comes there if that one never does, even where splits put tokens into all of their
// flows, joins but and-joins take one for enough, and no token is ever taken away.
func dominates(n *Net, task, to TaskID, without []int) bool {
	missing := make([]int, n.NumTasks()) // inputs without a token
	for t := range TaskID(n.NumTasks()) {
		if missing[t] = 1; n.Task(t).Join == And {
			missing[t] = len(n.Inputs(t))
		}
	}
	seen := NewBits(n.NumConditions())
	seen.Add(int(n.Start()))
	for todo := []ConditionID{n.Start()}; len(todo) > 0; {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, t := range n.Consumers(c) {
			if missing[t]--; missing[t] != 0 {
				continue
			}
			if t == to {
				return false
			}
			for i, out := range n.Outputs(t) {
				if t == task && !slices.Contains(without, i) {
					continue
				}
				if !seen.Has(int(out)) {
					seen.Add(int(out))
					todo = append(todo, out)
				}
			}
		}
	}
	return to >= 0 || !seen.Has(int(n.End()))
}
