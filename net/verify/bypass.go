package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// Bypass finds a run that comes to a task, or to the end of the case if to is negative, without another task having
// completed: the one that gives what the former reads. In a net where a way leads past the writer,
//
//	start -> write -> read -> end
//	start -> hurry -> read
//
// it is the run "hurry". A task that may complete without an output, as after a time that is over, can be passed so, too:
// without lists the outputs, by their index in flow order, that get tokens then; nil if the task always has an output.
//
// It returns a shortest one, after which the task to is enabled (or the case is complete); nil if there is none. It also
// returns whether that is decided, which it is not if the budget ran out. The states are those of [Net], and so is the
// meaning of the options, of which only States, Time and Now count here.
func Bypass(n *net.Net, task, to net.TaskID, without []int, opts Options) (run *Witness, decided bool) {
	if dominates(n, task, to, without) {
		return nil, true
	}
	l := &netLowering{n: n, moments: newMoments(n)}
	sys, _ := l.system()
	if sys == nil {
		return nil, false
	}
	arrived := l.arrival(sys, to)
	sys.Moves = slices.DeleteFunc(sys.Moves, func(m statespace.Move) bool {
		return net.TaskID(m.Task) == task && l.moves[m.Label].moment != Starts && !l.moves[m.Label].within(without)
	})
	sys.Prepare()
	lim := opts.budget(defaultStates)
	lim.MoreStates = lim.States // what waits for the task is a deadlock here, which says nothing of the rest
	x := statespace.NewSearch(sys, lim)
	f := findings{named: l, analysis: &analysis{sys: sys, search: x}}
	next := int32(0)
	for states := min(lim.States, firstLook); ; states = min(lim.States, 4*states) {
		if next == 0 {
			x.Run(states, lim.Bytes)
		} else {
			x.Resume(states, lim.Bytes)
		}
		for ; next < int32(x.States.Len()); next++ {
			if !arrived(f.state(x, next)) {
				continue
			}
			run := x.RunTo(next)
			if end := f.play(run); end != nil && arrived(end) { // not so if tokens pile up on the way
				return f.toWitness(run, end), true
			}
		}
		if x.Limit != statespace.LimitStates || states == lim.States {
			return nil, x.Limit == statespace.NoLimit && l.undecided == 0
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

// arrival returns a test for states in which a task is enabled, or the case is complete if the task is negative. A
// task is enabled even if a routing task is to run first that may disable it again: which one is tried first is a
// matter of the order of flows.
func (l *netLowering) arrival(sys *statespace.System, to net.TaskID) func(state []uint8) bool {
	starts := slices.DeleteFunc(slices.Clone(sys.Moves), func(m statespace.Move) bool {
		return net.TaskID(m.Task) != to || l.moves[m.Label].moment == Completes
	})
	return func(state []uint8) bool {
		if over, _ := sys.Complete(state); over || to < 0 {
			return over && to < 0
		}
		return slices.ContainsFunc(starts, func(m statespace.Move) bool { return sys.Enabled(&m, state) })
	}
}

// dominates reports whether a token can only come to a task, or to the end if to is negative, once another task has
// completed: whether nothing comes there if that one never does, even where splits put tokens into all of their
// flows, joins but and-joins take one for enough, and no token is ever taken away.
func dominates(n *net.Net, task, to net.TaskID, without []int) bool {
	missing := make([]int, n.NumTasks()) // inputs without a token
	for t := range net.TaskID(n.NumTasks()) {
		if missing[t] = 1; n.Task(t).Join == net.And {
			missing[t] = len(n.Inputs(t))
		}
	}
	seen := net.NewBits(n.NumConditions())
	seen.Add(int(n.Start()))
	for todo := []net.ConditionID{n.Start()}; len(todo) > 0; {
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
