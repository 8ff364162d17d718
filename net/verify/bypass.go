package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// Bypass finds a run that reaches a task, or the end of the case if to is negative, without another task having
// completed: one that provides the data which the first one reads. In a net with a path around the writer,
//
//	start -> write -> read -> end
//	start -> hurry -> read
//
// it is the run "hurry". A task that can complete without an output, for example by a timeout, counts as passed in that
// way too: without has the outputs, by their index in flow order, that get tokens then; nil if the task always has an
// output.
//
// It returns a shortest run, after which the task to is enabled or the case is complete; nil if there is none. decided
// is false if the budget was exhausted. The states are those of [Net]. Of the options only States, Time and Now apply.
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
	lim.MoreStates = lim.States // deadlocks are irrelevant here
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
			if end := f.play(run); end != nil && arrived(end) { // false if tokens pile up on the way
				return f.toWitness(run, end), true
			}
		}
		if x.Limit != statespace.LimitStates || states == lim.States {
			return nil, x.Limit == statespace.NoLimit && l.undecided == 0
		}
	}
}

// within reports whether a completion puts tokens only into some of these outputs.
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

// firstLook is the number of states at the first check for an arrival. Each further check is at four times as many.
const firstLook = 256

// arrival returns a test for states in which a task is enabled, or the case is complete if the task is negative. The
// task counts as enabled even if a routing task comes first that may disable it again, because the order of routing
// tasks depends only on the order of flows.
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

// dominates reports whether no token can reach a task, or the end if to is negative, before another task has completed.
// It uses an over-approximation of what can happen: splits put tokens into all flows, only and-joins need all inputs,
// and no token is ever removed.
func dominates(n *net.Net, task, to net.TaskID, without []int) bool {
	missing := make([]int, n.NumTasks()) // the number of inputs without a token
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
