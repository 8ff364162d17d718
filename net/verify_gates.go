package net

import "fmt"

// mismatches finds joins that do not suit the split whose branches they bring together. Such a pair is no proof of
// anything, so it is only told where something is wrong, as a hint at the cause.
//
// The split of a join is the last element that every way to the join leads over, its immediate dominator.
func (f *warner) mismatches() {
	d := newDominators(f.n)
	for t := range f.n.tasks {
		if len(f.n.tasks[t].inputs) < 2 || f.n.def.Tasks[t].Join == Or {
			continue
		}
		at := d.of(len(f.n.conditions) + t)
		if at < 0 {
			continue
		}
		split, gate, branches := f.split(at)
		if branches == nil || !f.meet(branches, TaskID(t), at) {
			continue
		}
		join := f.task(int32(t))
		switch and := f.n.def.Tasks[t].Join == And; {
		case and && gate != And:
			f.add(XorSplitAndJoin, join, fmt.Sprintf(
				"the and-join of %q waits for branches of which %q starts only some (%s)", join.Name, split.Name, gate),
				fmt.Sprintf("make the join of %q %s, or the split of %q and", join.Name, gate, split.Name), split)
		case !and && gate != Xor:
			f.add(AndSplitXorJoin, join, fmt.Sprintf(
				"the xor-join of %q does not wait for all the branches that %q starts together (%s)", join.Name, split.Name, gate),
				fmt.Sprintf("make the join of %q %s, or the split of %q xor", join.Name, gate, split.Name), split)
		}
	}
}

// split describes an element as a split: what chooses its branches, and the nodes that they begin with; none if it has
// just one.
func (f *warner) split(node int) (Element, Gate, []int) {
	if t := node - len(f.n.conditions); t >= 0 {
		outputs := f.n.tasks[t].outputs
		if len(outputs) < 2 {
			return Element{}, And, nil
		}
		branches := make([]int, len(outputs))
		for i, c := range outputs {
			branches[i] = int(c)
		}
		return f.task(int32(t)), f.n.def.Tasks[t].Split, branches
	}
	consumers := f.n.conditions[node].consumers
	if len(consumers) < 2 {
		return Element{}, And, nil
	}
	branches := make([]int, len(consumers))
	for i, t := range consumers {
		branches[i] = len(f.n.conditions) + int(t)
	}
	return f.condition(ConditionID(node)), Xor, branches
}

// meet reports whether two branches of a split lead to two inputs of a join, without passing either of them. (The input
// by which a loop comes back to its head is no such meeting.)
func (f *warner) meet(branches []int, join TaskID, split int) bool {
	conditions := len(f.n.conditions)
	first := -1 // the input that an earlier branch leads to
	for _, b := range branches {
		seen := NewBits(conditions + len(f.n.tasks))
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
			for _, y := range successors(f.n, x) {
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
func successors(n *Net, node int) []int {
	var list []int
	if t := node - len(n.conditions); t >= 0 {
		for _, c := range n.tasks[t].outputs {
			list = append(list, int(c))
		}
		return list
	}
	for _, t := range n.conditions[node].consumers {
		list = append(list, len(n.conditions)+int(t))
	}
	return list
}
