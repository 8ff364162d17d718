package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/workitem"
)

// Items is the work items that a case has in memory: those of the latest activation of each task.
type Items struct {
	List[*workitem.Item]
	tallies []activation // by task, then generation; nil while there are few items, which are counted each time
	counted bool         // no snapshot shares the tallies
}

// activation is the tally of one activation of a task.
type activation struct {
	task       string
	generation int
	tally      workitem.Tally
}

// few is the number of items up to which they are counted each time. The policy asks for the tally at every end of an
// item, so counting n items each time would take n² steps.
const few = 64

// Get returns an item; nil if there is none with that id.
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

// snapshot returns a copy for the next command, which shares elements and tallies until it changes them.
func (l Items) snapshot() Items {
	return Items{List: l.List.snapshot(), tallies: l.tallies}
}

// put adds an item, or replaces the one with its id. Once there are many items, it builds the tallies, and then updates
// them: the old state of the item is subtracted, the new one added.
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

// count returns the tally of an item's activation, and creates it if necessary.
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

// activation returns the index of the tally of an activation, or where to insert it.
func (l *Items) activation(task string, generation int) (int, bool) {
	return slices.BinarySearchFunc(l.tallies, generation, func(a activation, generation int) int {
		return cmp.Or(strings.Compare(a.task, task), cmp.Compare(a.generation, generation))
	})
}

// forget drops the final items of a task. An activation that ends cancels its items in the same command, so there
// should be no live ones when the next begins; but live ones are kept, so that this does not depend on the order of the
// changes of a command.
func (l *Items) forget(task string) {
	first, _ := l.activation(task, 0)
	if l.tallies != nil && (first == len(l.tallies) || l.tallies[first].task != task) {
		return // most tasks have no items yet when they begin, and need no search
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
