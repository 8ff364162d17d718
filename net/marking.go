package net

// Marking counts the tokens of every condition, by [ConditionID].
type Marking []int32

// InitialMarking holds one token, in the start condition.
func (n *Net) InitialMarking() Marking {
	m := make(Marking, len(n.conditions))
	m[n.start] = 1
	return m
}

// Clone returns a copy that shares nothing with m.
func (m Marking) Clone() Marking { return append(Marking(nil), m...) }

// Decision answers whether a task may start.
type Decision struct {
	Enabled bool
	// Undecided is set where an or-join's search ran out of its budget. The task then waits: firing wrongly cannot be
	// undone, and a wait can be seen and ended.
	Undecided bool
}

// Enabled decides whether the join of a task is satisfied. A busy task is never enabled. The tokens stay where they
// are; [Net.Consumes] says which ones a start takes.
func (n *Net) Enabled(t TaskID, m Marking, busy Bits) Decision {
	d, _ := n.Decide(t, m, busy)
	return d
}

// Decide is like Net.Enabled, for callers with a budget of their own: it also returns the cost of the search of an
// or-join, in words of memory copied and compared; 0 if there was no search.
func (n *Net) Decide(t TaskID, m Marking, busy Bits) (Decision, int) {
	if busy.Has(int(t)) {
		return Decision{}, 0
	}
	marked := 0
	for _, c := range n.tasks[t].inputs {
		if m[c] > 0 {
			marked++
		}
	}
	switch n.def.Tasks[t].Join {
	case Xor:
		return Decision{Enabled: marked > 0}, 0
	case Or:
		if marked == 0 || marked == len(n.tasks[t].inputs) {
			return Decision{Enabled: marked > 0}, 0
		}
		return n.decideOrJoin(t, m, busy)
	default:
		return Decision{Enabled: marked > 0 && marked == len(n.tasks[t].inputs)}, 0
	}
}

// Consumes lists the conditions that a start of the task takes a token from: all inputs for an and-join, the first
// marked one in flow order for an xor-join, every marked one for an or-join. It appends to dst, so that a caller may
// keep one buffer.
func (n *Net) Consumes(dst []ConditionID, t TaskID, m Marking) []ConditionID {
	join := n.def.Tasks[t].Join
	for _, c := range n.tasks[t].inputs {
		if join != And && m[c] == 0 {
			continue
		}
		dst = append(dst, c)
		if join == Xor {
			break
		}
	}
	return dst
}
