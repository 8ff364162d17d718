package verify

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/reduce"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// reducible lowers the net for the reduction rules. The result differs from the exact system:
//
//   - The inputs of an xor-join that feed it alone become one place, since it makes no difference which of them has the token. If the region of the join
//     empties them all, they stay separate instead, and the join may take from any: nothing is left in the others anyway.
//   - A busy task may be started again, which puts a second token into its busy place. The rules are for safe nets, so a net in which that can happen is
//     not proved sound.
//   - A member of a region with one private input is one move: the region takes its token, whether it waits or is being processed, and with two tokens
//     the net is not safe. The rules do not cover other members with private inputs.
//   - Routing tasks take time like others. That makes no difference if no other task takes from their inputs and no region is near: such a run can be
//     reordered into one in which they go first.
func (l *netLowering) reducible(traced bool) (*reduce.Net, int32) {
	for i := range l.n.NumTasks() {
		if t := net.TaskID(i); l.choosesAmongShared(t) || !l.mergeableInputs(t) || !l.plainRouting(t) || !l.plainMember(t) ||
			l.n.Task(t).Split == net.Or && len(l.n.Outputs(t)) > 64 {
			return nil, -1
		}
	}
	b := &reducerBuilder{l: l, busyAt: slices.Repeat([]int32{-1}, l.n.NumTasks()), alias: make([]int32, l.n.NumConditions())}
	b.number()
	b.r = reduce.New(l.n.NumConditions()+b.busy, traced)
	for c, as := range b.alias {
		b.r.Places[c].Removed = int(as) != c
	}
	b.r.Places[b.alias[l.n.Start()]].Marked = true
	b.r.Places[b.alias[l.n.End()]].Fixed = true
	l.leaves = l.leaves[:0]
	for t := range net.TaskID(l.n.NumTasks()) {
		if !b.addTask(t) {
			return nil, -1
		}
	}
	b.r.Finish()
	return b.r, b.alias[l.n.End()]
}

// mergeableInputs reports whether the inputs of an xor-join can be one place: the same regions empty them.
func (l *netLowering) mergeableInputs(t net.TaskID) bool {
	inputs := l.n.Inputs(t)
	if l.n.Task(t).Join != net.Xor {
		return true
	}
	return !slices.ContainsFunc(inputs, func(c net.ConditionID) bool {
		return !slices.Equal(l.emptiedBy[c], l.emptiedBy[inputs[0]])
	})
}

// plainRouting reports whether it makes no difference when a routing task takes time.
func (l *netLowering) plainRouting(t net.TaskID) bool {
	if l.n.Task(t).Kind != net.Routing {
		return true
	}
	tasks, conditions := l.n.Region(t)
	if len(tasks)+len(conditions)+len(l.memberOf[t]) > 0 {
		return false
	}
	near := func(c net.ConditionID) bool { return len(l.emptiedBy[c]) > 0 || l.ofMember.Has(int(c)) }
	if slices.ContainsFunc(l.n.Outputs(t), near) || slices.ContainsFunc(l.n.Inputs(t), near) {
		return false
	}
	for _, c := range l.n.Inputs(t) {
		for _, u := range l.n.Consumers(c) {
			if u != t && (l.n.Task(u).Kind != net.Routing || len(l.n.Inputs(u)) > 1 || len(l.n.Inputs(t)) > 1) {
				return false
			}
		}
	}
	return true
}

// plainMember reports whether the effect of regions on the task can be expressed by emptying places alone.
func (l *netLowering) plainMember(u net.TaskID) bool {
	if len(l.memberOf[u]) == 0 || l.singleMember(u) {
		return true
	}
	for _, o := range l.memberOf[u] {
		_, conditions := l.n.Region(o)
		for _, c := range l.n.PrivateInputs(u) {
			if !slices.Contains(conditions, c) {
				return false
			}
		}
	}
	return true
}

// singleMember reports whether the task is a member of regions that waits for tokens in one private place (or in
// several that are merged), which no region empties without canceling the task too.
func (l *netLowering) singleMember(u net.TaskID) bool {
	if len(l.memberOf[u]) == 0 || len(l.n.PrivateInputs(u)) != len(l.n.Inputs(u)) || len(l.n.Inputs(u)) > 1 && !l.merged(u) {
		return false
	}
	other := func(o net.TaskID) bool { return !slices.Contains(l.memberOf[u], o) }
	return !slices.ContainsFunc(l.emptiedBy[l.n.Inputs(u)[0]], other)
}

// merged reports whether the task is an xor-join whose inputs become one place.
func (l *netLowering) merged(t net.TaskID) bool {
	return l.n.Task(t).Join == net.Xor && len(l.n.Inputs(t)) > 1 && !l.takesAll(t)
}

// takesAll reports whether the task is an xor-join whose region empties all its inputs.
func (l *netLowering) takesAll(t net.TaskID) bool {
	inputs := l.n.Inputs(t)
	return l.n.Task(t).Join == net.Xor && len(inputs) > 1 && !slices.ContainsFunc(inputs, func(c net.ConditionID) bool {
		return !slices.Contains(l.emptiedBy[c], t)
	})
}

// reducerBuilder fills a reducer with the transitions of a net.
type reducerBuilder struct {
	l      *netLowering
	r      *reduce.Net
	alias  []int32 // by condition: the place that represents it
	busyAt []int32 // by task: its busy place, or -1
	busy   int     // the number of busy places
}

// number assigns a place to every condition and every busy task.
func (b *reducerBuilder) number() {
	n := b.l.n
	for c := range b.alias {
		b.alias[c] = int32(c)
	}
	for t := range net.TaskID(n.NumTasks()) {
		if inputs := n.Inputs(t); b.l.merged(t) {
			for _, c := range inputs[1:] {
				b.alias[c] = int32(inputs[0])
			}
		}
		if b.l.split.Has(int(t)) && !b.l.singleMember(t) || b.l.orJoin(t) && b.manyWaysOut(t) {
			b.busyAt[t] = int32(n.NumConditions() + b.busy)
			b.busy++
		}
	}
}

// addTask adds the transitions of a task. It reports false if an arc would have weight two.
func (b *reducerBuilder) addTask(t net.TaskID) bool {
	in := b.inputs(t)
	if !b.l.takesAll(t) {
		return b.addJoined(t, in)
	}
	for i := range in {
		if !b.addJoined(t, in[i:i+1:i+1]) {
			return false
		}
	}
	return true
}

// addJoined adds the transitions of a task that takes from the given places.
func (b *reducerBuilder) addJoined(t net.TaskID, in []int32) bool {
	n := b.l.n
	out := make([]reduce.Arc, len(n.Outputs(t)))
	for i, c := range n.Outputs(t) {
		out[i] = reduce.Arc{Place: b.alias[c], Bit: int16(i & 63)}
		if i > 0 && n.Task(t).Split != net.Xor && slices.ContainsFunc(out[:i], func(a reduce.Arc) bool { return a.Place == out[i].Place }) {
			return false
		}
	}
	orTask := int32(-1)
	if b.l.orJoin(t) {
		orTask = int32(t)
	}
	moment := Whole
	if busy := b.busyAt[t]; busy >= 0 {
		start := netMove{task: t, moment: Starts, output: -1}
		if moment = Completes; !b.l.split.Has(int(t)) {
			start.task, moment = -1, Whole // shown as one move when it completes
		}
		b.add(start, reduce.Transition{In: in, Out: []reduce.Arc{{Place: busy}}, OrTask: orTask})
		in, orTask = []int32{busy}, -1
	}
	if !b.manyWaysOut(t) {
		orSplit := n.Task(t).Split == net.Or && len(out) > 1
		tr := reduce.Transition{In: in, Out: out, OrTask: orTask, OrSplit: orSplit, Resets: b.resets(t)}
		b.add(netMove{task: t, moment: moment, output: -1}, tr)
		return true
	}
	for i := range out {
		tr := reduce.Transition{In: slices.Clone(in), Out: out[i : i+1 : i+1], OrTask: orTask, Resets: b.resets(t)}
		b.add(netMove{task: t, moment: moment, output: int32(i)}, tr)
	}
	return true
}

// manyWaysOut reports whether the task becomes several transitions. If it is an or-join too, the join gets a transition
// of its own before them, since the rules require an or-join to be one transition.
func (b *reducerBuilder) manyWaysOut(t net.TaskID) bool {
	return b.l.n.Task(t).Split == net.Xor && len(b.l.n.Outputs(t)) > 1
}

func (b *reducerBuilder) inputs(t net.TaskID) []int32 {
	in := make([]int32, 0, len(b.l.n.Inputs(t)))
	for _, c := range b.l.n.Inputs(t) {
		if p := b.alias[c]; !slices.Contains(in, p) {
			in = append(in, p)
		}
	}
	return in
}

// add adds a transition and its meaning.
func (b *reducerBuilder) add(what netMove, tr reduce.Transition) {
	label := int32(len(b.l.leaves))
	what.input = -1
	b.l.leaves = append(b.l.leaves, what)
	tr.SplitLabel, tr.Label = -1, label
	switch {
	case what.task < 0:
	case tr.OrSplit:
		tr.SplitLabel = label
	default:
		tr.Seq = b.r.Leaf(label)
	}
	b.r.Transitions = append(b.r.Transitions, tr)
}

// resets returns the places that the task's region empties.
func (b *reducerBuilder) resets(t net.TaskID) []int32 {
	tasks, conditions := b.l.n.Region(t)
	if len(tasks)+len(conditions) == 0 {
		return nil
	}
	var list []int32
	seen := net.NewBits(len(b.r.Places))
	add := func(p int32) {
		if !seen.Has(int(p)) {
			seen.Add(int(p))
			list = append(list, p)
		}
	}
	for _, c := range conditions {
		add(b.alias[c])
	}
	for _, u := range tasks {
		switch {
		case u == t:
		case b.l.singleMember(u):
			add(b.alias[b.l.n.Inputs(u)[0]])
		case b.busyAt[u] >= 0:
			add(b.busyAt[u])
		}
	}
	return list
}

func (l *netLowering) taskOf(t reduce.TracedMove) int32 { return int32(l.leaves[t.Label].task) }

func (l *netLowering) matches(t reduce.TracedMove, m *statespace.Move) bool {
	want, have := l.leaves[t.Label], l.moves[m.Label]
	return want.moment == have.moment && want.output == have.output && t.Chosen == have.chosen
}
