package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/workitem"
)

// Items are the work items that a case holds in memory: those of each task's latest activation.
type Items struct {
	List[*workitem.Item]
	tallies []activation // by task, then generation; nil while there are few items, which are counted as fast
	counted bool         // no other copy has these tallies
}

// activation is the tally of one activation of a task.
type activation struct {
	task       string
	generation int
	tally      workitem.Tally
}

// few is how many items are counted one by one. Of more, the tallies are kept: the policy asks for one at every end of
// an item, and would so look at n items n times.
const few = 64

// Get finds an item; nil if it is not there.
func (l Items) Get(id workitem.ID) *workitem.Item { return l.get(sortKey{id}) }

// Tally counts the items of an activation of a task by state.
func (l Items) Tally(task string, generation int) workitem.Tally {
	if l.tallies != nil {
		if i, ok := l.activation(task, generation); ok {
			return l.tallies[i].tally
		}
		return workitem.Tally{}
	}
	var tally workitem.Tally
	for it := range l.All() {
		if it.Generation == generation && it.Task == task {
			tally.Add(it.State, !it.Successor.IsZero())
		}
	}
	return tally
}

// snapshot returns a copy for the next command, which shares the elements and the tallies until it changes them.
func (l Items) snapshot() Items {
	return Items{List: l.List.snapshot(), tallies: l.tallies}
}

// put adds an item, or replaces the one with its id. The tallies are made when the items become many, by counting each once,
// and then moved along: the item before out of its count, the new one into its.
func (l *Items) put(it *workitem.Item) {
	before := l.get(sortKey{it.ID})
	l.List.put(it)
	switch {
	case l.tallies != nil:
		if before != nil {
			l.count(before).Remove(before.State, !before.Successor.IsZero())
		}
		l.count(it).Add(it.State, !it.Successor.IsZero())
	case l.Len() > few:
		l.tallies, l.counted = make([]activation, 0, 1), true
		for it := range l.All() {
			l.count(it).Add(it.State, !it.Successor.IsZero())
		}
	}
}

// count finds or makes the tally that an item is counted in.
func (l *Items) count(it *workitem.Item) *workitem.Tally {
	if !l.counted {
		l.tallies, l.counted = slices.Clone(l.tallies), true
	}
	i, ok := l.activation(it.Task, it.Generation)
	if !ok {
		l.tallies = slices.Insert(l.tallies, i, activation{task: it.Task, generation: it.Generation})
	}
	return &l.tallies[i].tally
}

// activation finds the tally of an activation, or where it belongs.
func (l *Items) activation(task string, generation int) (int, bool) {
	return slices.BinarySearchFunc(l.tallies, generation, func(a activation, generation int) int {
		return cmp.Or(strings.Compare(a.task, task), cmp.Compare(a.generation, generation))
	})
}

// forget drops the final items of a task. Live ones stay: an activation that ends cancels its items in the same command, so
// there is none when the next begins, but the order of the changes of one command is not relied on here.
func (l *Items) forget(task string) {
	first, _ := l.activation(task, 0)
	if l.tallies != nil && (first == len(l.tallies) || l.tallies[first].task != task) {
		return // it has no items, as most tasks when they begin: they are not searched for
	}
	var gone []*workitem.Item
	for it := range l.All() {
		if it.Task == task && it.State.Final() {
			gone = append(gone, it)
		}
	}
	for _, it := range gone {
		l.remove(sortKey{it.ID})
		if l.tallies != nil {
			l.count(it).Remove(it.State, !it.Successor.IsZero())
		}
	}
	if l.Len() == 0 {
		l.tallies = nil
	}
	if l.counted {
		l.tallies = slices.DeleteFunc(l.tallies, func(a activation) bool { return a.tally == workitem.Tally{} })
	}
}
