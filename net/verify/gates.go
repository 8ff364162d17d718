package verify

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/graph"
)

// mismatches finds joins that do not suit the split whose branches they bring together. Such a pair is no proof of
// anything, so it is only reported where something is wrong, as a hint at the cause.
//
// The split of a join is the last element that every way to the join leads over, its immediate dominator.
func (f *collector) mismatches() {
	d := graph.NewDominators(f.n.NumConditions()+f.n.NumTasks(), int(f.n.Start()), f.successors)
	for t := range net.TaskID(f.n.NumTasks()) {
		if len(f.n.Inputs(t)) < 2 || f.n.Task(t).Join == net.Or {
			continue
		}
		at := d.Of(f.n.NumConditions() + int(t))
		if at < 0 {
			continue
		}
		split, gate, branches := f.split(at)
		if branches == nil || !f.meet(branches, t, at) {
			continue
		}
		join := f.task(int32(t))
		switch and := f.n.Task(t).Join == net.And; {
		case and && gate != net.And:
			f.add(XorSplitAndJoin, join, fmt.Sprintf(
				"the and-join of %q waits for branches of which %q starts only some (%s)", join.Name, split.Name, gate),
				fmt.Sprintf("make the join of %q %s, or the split of %q and", join.Name, gate, split.Name), split)
		case !and && gate != net.Xor:
			f.add(AndSplitXorJoin, join, fmt.Sprintf(
				"the xor-join of %q does not wait for all the branches that %q starts together (%s)", join.Name, split.Name, gate),
				fmt.Sprintf("make the join of %q %s, or the split of %q xor", join.Name, gate, split.Name), split)
		}
	}
}

// split describes an element as a split: what chooses its branches, and the nodes that they begin with; none if it has
// just one.
func (f *collector) split(node int) (Element, net.Gate, []int) {
	if t := net.TaskID(node - f.n.NumConditions()); t >= 0 {
		outputs := f.n.Outputs(t)
		if len(outputs) < 2 {
			return Element{}, net.And, nil
		}
		return f.task(int32(t)), f.n.Task(t).Split, nodes(outputs, 0)
	}
	consumers := f.n.Consumers(net.ConditionID(node))
	if len(consumers) < 2 {
		return Element{}, net.And, nil
	}
	return f.condition(net.ConditionID(node)), net.Xor, nodes(consumers, f.n.NumConditions())
}

// meet reports whether two branches of a split lead to two inputs of a join, without passing either of them. (The input
// by which a loop comes back to its head is no such meeting.)
func (f *collector) meet(branches []int, join net.TaskID, split int) bool {
	conditions := f.n.NumConditions()
	first := -1 // the input that an earlier branch leads to
	for _, b := range branches {
		seen := net.NewBits(conditions + f.n.NumTasks())
		seen.Add(split)
		seen.Add(conditions + int(join))
		hit := -1
		for todo := []int{b}; len(todo) > 0; {
			x := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen.Has(x) {
				continue
			}
			seen.Add(x)
			for _, y := range f.successors(x) {
				if y == conditions+int(join) {
					if first >= 0 && first != x {
						return true
					}
					hit = x
				}
				todo = append(todo, y)
			}
		}
		if first < 0 {
			first = hit
		}
	}
	return false
}

// successors lists the nodes behind one: conditions are numbered first, then tasks.
func (f *collector) successors(node int) []int {
	conditions := f.n.NumConditions()
	if t := node - conditions; t >= 0 {
		return nodes(f.n.Outputs(net.TaskID(t)), 0)
	}
	return nodes(f.n.Consumers(net.ConditionID(node)), conditions)
}

// nodes turns numbers of conditions or tasks into numbers of nodes.
func nodes[ID net.ConditionID | net.TaskID](ids []ID, first int) []int {
	list := make([]int, len(ids))
	for i, id := range ids {
		list[i] = first + int(id)
	}
	return list
}
