package verify

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/graph"
)

// mismatches finds joins that do not match the split of the branches they join. Such a pair proves nothing, so it is
// only reported if there is a finding, as a hint at its cause.
//
// The split of a join is its immediate dominator: the last node on every path to it.
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
		split, rule, branches := f.split(at)
		if branches == nil || !f.meet(branches, t, at) {
			continue
		}
		join := f.task(int32(t))
		switch and := f.n.Task(t).Join == net.And; {
		case and && rule != net.And:
			f.add(XorSplitAndJoin, join, fmt.Sprintf(
				"the and-join of %q waits for branches of which %q starts only some (%s)", join.Name, split.Name, rule),
				fmt.Sprintf("make the join of %q %s, or the split of %q and", join.Name, rule, split.Name), split)
		case !and && rule != net.Xor:
			f.add(AndSplitXorJoin, join, fmt.Sprintf(
				"the xor-join of %q does not wait for all the branches that %q starts together (%s)", join.Name, split.Name, rule),
				fmt.Sprintf("make the join of %q %s, or the split of %q xor", join.Name, rule, split.Name), split)
		}
	}
}

// split describes a node as a split: its kind, and the first nodes of its branches; none if it has only one branch.
func (f *collector) split(node int) (Element, net.Rule, []int) {
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

// meet reports whether two branches of a split lead to different inputs of a join, without passing the split or the
// join. (The input by which a loop returns to its head does not count.)
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

// successors returns the nodes after a node: conditions are numbered first, then tasks.
func (f *collector) successors(node int) []int {
	conditions := f.n.NumConditions()
	if t := node - conditions; t >= 0 {
		return nodes(f.n.Outputs(net.TaskID(t)), 0)
	}
	return nodes(f.n.Consumers(net.ConditionID(node)), conditions)
}

// nodes converts ids of conditions or tasks to numbers of nodes.
func nodes[ID net.ConditionID | net.TaskID](ids []ID, first int) []int {
	list := make([]int, len(ids))
	for i, id := range ids {
		list[i] = first + int(id)
	}
	return list
}
