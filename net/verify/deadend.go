package verify

import "github.com/tasq-dev/tasq/net"

// DeadEnd is a state from which no run completes a case.
type DeadEnd struct {
	// Run is the shortest run to it: the tasks that complete, in order. It is empty if the case is there already.
	Run []string
	// Deadlock reports whether nothing can happen there; if not, the case continues without an end.
	Deadlock bool
	// Left has the conditions that are marked in a deadlock.
	Left []string
}

// DeadEndFrom searches all runs from a marking and a set of started tasks for a dead end. It returns nil if each of them can be continued so that
// it completes the case. A task starts in one step and completes in another, since it can be canceled in between; routing tasks run first, in one
// step. Decided is false if there are more states than the budget.
//
// [WayFrom] asks for less: one run that completes the case.
//
//	B and the and-join J behind it are started, and B cancels J:   J    completes the case
//	                                                               B    a dead end: J waits for the other token, which it had consumed
func DeadEndFrom(n *net.Net, m net.Marking, busy []net.TaskID, budget int) (end *DeadEnd, decided bool) {
	w := &wayfinder{n: n, budget: budget}
	w.begin(m, busy)
	var completed []int
	deadlock := make(map[int]bool)
	for at := 0; at < len(w.nodes); at++ {
		if len(w.nodes) > budget {
			return nil, false
		}
		if w.nodes[at].marking[n.End()] > 0 {
			completed = append(completed, at)
		} else if !w.expandAsRun(at) {
			deadlock[at] = true
		}
	}
	canComplete := w.leadingTo(completed)
	at := -1
	for i := range w.nodes { // a deadlock rather than a state before it, from which only deadlocks are reached
		if deadlock[i] || at < 0 && !canComplete[i] {
			at = i
		}
		if deadlock[i] {
			break
		}
	}
	if at < 0 {
		return nil, true
	}
	end = &DeadEnd{Run: w.run(at), Deadlock: deadlock[at]}
	if end.Deadlock {
		end.Left = w.marked(at)
	}
	return end, true
}

// expandAsRun adds the successors of a state as an engine reaches them, and reports whether there are any.
func (w *wayfinder) expandAsRun(at int) bool {
	routed, moved := false, false
	for i, t := range w.n.Definition().Tasks {
		routed = t.Kind == net.Routing && w.step(at, net.TaskID(i), true) || routed
	}
	for i, t := range w.n.Definition().Tasks {
		moved = !routed && t.Kind != net.Routing && w.step(at, net.TaskID(i), false) || moved
	}
	return routed || moved
}

// leadingTo reports for each state whether a run leads from it to one of those given.
func (w *wayfinder) leadingTo(states []int) []bool {
	leads := make([]bool, len(w.nodes))
	for len(states) > 0 {
		at := states[len(states)-1]
		states = states[:len(states)-1]
		if !leads[at] {
			leads[at] = true
			states = append(states, w.before[at]...)
		}
	}
	return leads
}
