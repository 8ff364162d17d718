package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// A task starts at one time and completes at another, and other tasks act in between. Exploring both moments doubles
// the states of a search for every task that runs beside others. Most tasks can be one move, for one of two reasons.
// Both turn any run with separate moments into one without that shows the same: the same markings whenever no task is
// busy, the same started tasks, the same improper completions.
//
// Late start: move the start of t to just before its completion. In between, the tokens that t took are still there.
// That must make no difference: a region empties them if and only if it cancels t; no member of a region loses other
// tokens because they enable it; no routing task can use them (it would, at once); and no xor-join of shared inputs
// chooses by them. An or-join that considers the inputs of t is allowed only if t alone can use them: then a token
// there can lead to the same as a busy t. And t must not be an or-join itself, for which the analysis allows one start
// for every token.
//
// Early completion: move the completion of t to just after its start. In between, the tokens that t puts are already
// there. That must make no difference: no region empties them or cancels t; t has no region itself; they are not the
// end of the case; and neither members of regions nor routing tasks nor xor-joins of shared inputs depend on them.
// Or-joins that could start with t busy still can, since fewer tokens can come once its choice is made.
//
// Routing tasks are always one move: the engine lets nothing happen in between.
type moments struct {
	n         *net.Net
	emptiedBy [][]net.TaskID  // by condition: the tasks whose regions name it
	memberOf  [][]net.TaskID  // by task: the other tasks whose regions name it
	ofMember  net.Bits        // inputs of members that lose tokens in inputs which the region does not name
	choosing  net.Bits        // inputs of xor-joins that share one with another task
	behind    [][2]net.TaskID // by condition: two or-joins that a token there can reach; -1 for none. Nil without or-joins
	orJoins   bool
	regions   bool
	split     net.Bits // tasks that need both moments
}

func newMoments(n *net.Net) *moments {
	m := &moments{
		n: n, emptiedBy: make([][]net.TaskID, n.NumConditions()), memberOf: make([][]net.TaskID, n.NumTasks()),
		ofMember: net.NewBits(n.NumConditions()), choosing: net.NewBits(n.NumConditions()), split: net.NewBits(n.NumTasks()),
	}
	for i := range n.NumTasks() {
		t := net.TaskID(i)
		m.region(t)
		m.orJoins = m.orJoins || m.orJoin(t)
		if m.choosesAmongShared(t) {
			for _, c := range n.Inputs(t) {
				m.choosing.Add(int(c))
			}
		}
	}
	if m.orJoins {
		m.lookAhead()
	}
	for i := range n.NumTasks() {
		if t := net.TaskID(i); n.Task(t).Kind != net.Routing && !m.mayStartLate(t) && !m.mayCompleteEarly(t) {
			m.split.Add(i)
		}
	}
	return m
}

func (m *moments) region(t net.TaskID) {
	tasks, conditions := m.n.Region(t)
	m.regions = m.regions || len(tasks)+len(conditions) > 0
	for _, c := range conditions {
		if !slices.Contains(m.emptiedBy[c], t) {
			m.emptiedBy[c] = append(m.emptiedBy[c], t)
		}
	}
	for _, u := range tasks {
		if u == t || slices.Contains(m.memberOf[u], t) {
			continue // when it completes, it is neither busy nor enabled any more
		}
		m.memberOf[u] = append(m.memberOf[u], t)
		if slices.ContainsFunc(m.n.PrivateInputs(u), func(c net.ConditionID) bool { return !slices.Contains(conditions, c) }) {
			for _, c := range m.n.Inputs(u) {
				m.ofMember.Add(int(c))
			}
		}
	}
}

// orJoin reports whether the task is an or-join that may have to wait.
func (m *moments) orJoin(t net.TaskID) bool {
	return m.n.Task(t).Join == net.Or && len(m.n.Inputs(t)) > 1
}

// choosesAmongShared reports whether the task is an xor-join with an input that another task can use too. It matters
// which of its inputs such a join takes from; with inputs of its own it does not.
func (m *moments) choosesAmongShared(t net.TaskID) bool {
	return m.n.Task(t).Join == net.Xor && len(m.n.Inputs(t)) > 1 && len(m.n.PrivateInputs(t)) < len(m.n.Inputs(t))
}

func (m *moments) mayStartLate(t net.TaskID) bool {
	for _, c := range m.n.Inputs(t) {
		if !m.goesWith(c, t) || m.ofMember.Has(int(c)) || m.choosing.Has(int(c)) || m.feedsRouting(c, t) {
			return false
		}
		private := len(m.n.Consumers(c)) == 1
		if m.orJoins && (!private || m.orJoin(t)) && m.watched(c, t) {
			return false
		}
	}
	return true
}

func (m *moments) mayCompleteEarly(t net.TaskID) bool {
	tasks, conditions := m.n.Region(t)
	if len(m.memberOf[t])+len(tasks)+len(conditions) > 0 {
		return false
	}
	for _, c := range m.n.Outputs(t) {
		if c == m.n.End() || len(m.emptiedBy[c]) > 0 || m.ofMember.Has(int(c)) || m.choosing.Has(int(c)) ||
			m.feedsRouting(c, t) {
			return false
		}
	}
	return true
}

// goesWith reports whether the other regions that empty an input of a task are those that cancel the task.
func (m *moments) goesWith(c net.ConditionID, t net.TaskID) bool {
	others := 0
	for _, o := range m.emptiedBy[c] {
		if o == t {
			continue
		}
		if others++; !slices.Contains(m.memberOf[t], o) {
			return false
		}
	}
	return others == len(m.memberOf[t])
}

// feedsRouting reports whether a routing task other than t can use tokens in the condition.
func (m *moments) feedsRouting(c net.ConditionID, t net.TaskID) bool {
	return slices.ContainsFunc(m.n.Consumers(c), func(u net.TaskID) bool {
		return u != t && m.n.Task(u).Kind == net.Routing
	})
}

// lookAhead finds two or-joins that a token in each condition can reach. (Two are enough: the question is whether there
// is one other than a given one.)
func (m *moments) lookAhead() {
	m.behind = make([][2]net.TaskID, m.n.NumConditions())
	for c := range m.behind {
		m.behind[c] = [2]net.TaskID{-1, -1}
	}
	type arrival struct {
		at   net.ConditionID
		join net.TaskID
	}
	var todo []arrival
	for t := range net.TaskID(m.n.NumTasks()) {
		if m.orJoin(t) {
			for _, c := range m.n.Inputs(t) {
				todo = append(todo, arrival{c, t})
			}
		}
	}
	for len(todo) > 0 {
		a := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		known := &m.behind[a.at]
		switch {
		case known[0] == a.join || known[1] >= 0:
			continue
		case known[0] < 0:
			known[0] = a.join
		default:
			known[1] = a.join
		}
		for _, t := range m.n.Producers(a.at) {
			for _, c := range m.n.Inputs(t) {
				todo = append(todo, arrival{c, a.join})
			}
		}
	}
}

// watched reports whether the decision of an or-join other than t may depend on a token in the condition.
func (m *moments) watched(c net.ConditionID, t net.TaskID) bool {
	behind := m.behind[c]
	return behind[0] >= 0 && behind[0] != t || behind[1] >= 0 && behind[1] != t
}
