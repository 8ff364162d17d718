package dispatch

import "bytes"

// entries is a binary heap with its first entry at index 0. Package container/heap would allocate for each Push and
// Pop, since it passes entries as interface values.
type entries []entry

// order reports whether one entry comes before another.
type order func(a, b *entry) bool

// byDue orders by due time, then by creation.
func byDue(a, b *entry) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return bytes.Compare(a.job[:], b.job[:]) < 0
}

// byPriority orders by urgency, if jobs age, then by priority, then by round, if there are fairness keys, then by due
// time, then by creation. With an aging of a minute:
//
//	     priority   due        urgent
//	b       2       10:01:00    9:59:00     first: two minutes ahead of its time
//	a       0       10:00:00   10:00:00
//	c       2       10:03:00   10:01:00     after a, which has waited long enough by then
func byPriority(a, b *entry) bool {
	if a.urgent != b.urgent {
		return a.urgent < b.urgent
	}
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	if c := compareTurns(a, b); c != 0 {
		return c < 0
	}
	return byDue(a, b)
}

func (h *entries) push(n entry, before order) {
	*h = append(*h, n)
	h.rise(len(*h)-1, before)
}

// rise moves an entry up to its position. The parent of the entry at i is at (i-1)/2, its children are at 2i+1 and 2i+2.
func (h *entries) rise(i int, before order) {
	list := *h
	for i > 0 {
		parent := (i - 1) / 2
		if !before(&list[i], &list[parent]) {
			return
		}
		list[i], list[parent] = list[parent], list[i]
		i = parent
	}
}

// remove removes the entry at an index. The last entry takes its place. It comes from another branch of the heap, so it may
// have to move in either direction.
func (h *entries) remove(i int, before order) entry {
	if i == 0 {
		return h.pop(before)
	}
	list := *h
	n, last := list[i], len(list)-1
	list[i], list[last] = list[last], entry{}
	if *h = list[:last]; i < last {
		h.sink(i, before)
		h.rise(i, before)
	}
	h.shrink()
	return n
}

func (h *entries) pop(before order) entry {
	list := *h
	first, last := list[0], len(list)-1
	list[0], list[last] = list[last], entry{}
	*h = list[:last]
	h.sink(0, before)
	h.shrink()
	return first
}

// shrink frees memory that a heap no longer needs. If an engine is opened with a million due jobs, they all move at
// once from the calendar to their queues, and would otherwise use the memory twice.
func (h *entries) shrink() {
	const least = 1024
	if n := len(*h); cap(*h) > least && n < cap(*h)/4 {
		*h = append(make(entries, 0, 2*n), *h...)
	}
}

// sink moves an entry down to its position.
func (h *entries) sink(i int, before order) {
	list := *h
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(list); child++ {
			if before(&list[child], &list[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}

// heapify orders entries as a heap.
func (h *entries) heapify(before order) {
	for i := len(*h)/2 - 1; i >= 0; i-- {
		h.sink(i, before)
	}
}

// until calls f with the entries that are due by a time, in any order. The heap is one by due.
func (h entries) until(due int64, f func(*entry)) {
	var visit func(i int)
	visit = func(i int) {
		if i < len(h) && h[i].due <= due {
			f(&h[i])
			visit(2*i + 1)
			visit(2*i + 2)
		}
	}
	visit(0)
}
