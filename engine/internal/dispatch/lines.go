package dispatch

import "container/heap"

// lines orders the lines of a queue by when they may start, so that a dispatch looks only at the first ones, however many
// keys there are:
//
//	a job comes ──▶ waiting, by when it has waited long enough ──▶ complete, by its most urgent job ──▶ form
//	                   │                                              ▲
//	                   └──── it is full, or has waited before ────────┘
//
// The zero value has no line.
type lines struct {
	all      map[lineKey]*batchLine
	waiting  lineHeap // lines that wait for more jobs, or for their time
	complete lineHeap // lines that may start, unless the clock was set back
	batches  int      // the number of full batches in all lines
}

// find returns the line of a key, and creates it if necessary.
func (l *lines) find(q *jobQueue, at lineKey) *batchLine {
	g := l.all[at]
	if g == nil {
		g = &batchLine{Batching: at.spec.Batching, queue: q, key: at, gone: make(map[dueJob]struct{})}
		if l.all == nil {
			l.all = make(map[lineKey]*batchLine)
			l.waiting.before = func(a, b *batchLine) bool { return a.begins < b.begins }
			l.complete.before = func(a, b *batchLine) bool { return byPriority(&a.ready[0], &b.ready[0]) }
		}
		l.all[at] = g
	}
	return g
}

// place moves a line to its position after its jobs have changed. An empty line is dropped, so that keys which no
// longer occur use no memory. A line of which a group is being formed has no position.
func (l *lines) place(g *batchLine) {
	if g.forming {
		return
	}
	l.remove(g)
	n := g.len()
	if n == 0 {
		delete(l.all, g.key)
		return
	}
	g.full = n / g.Most
	l.batches += g.full
	if n >= g.Most || g.noWait {
		l.complete.add(g)
		return
	}
	g.begins = g.due()
	l.waiting.add(g)
}

// remove removes a line from its heap.
func (l *lines) remove(g *batchLine) {
	if g.heap != nil {
		heap.Remove(g.heap, g.index)
	}
	l.batches -= g.full
	g.full = 0
}

// next returns the line with the most urgent job among those that may start; nil if there is none.
func (l *lines) next(now int64) *batchLine {
	l.sort(now)
	if l.complete.Len() == 0 {
		return nil
	}
	return l.complete.list[0]
}

// due returns when the next line has waited long enough; never if there is none. After the clock was set back it may
// miss lines, but only while another line may start.
func (l *lines) due(now int64) int64 {
	l.sort(now)
	if l.waiting.Len() == 0 {
		return never
	}
	return l.waiting.list[0].begins
}

// sort moves lines that have waited long enough to those that may start, and the first of these back if the clock was
// set back.
func (l *lines) sort(now int64) {
	for l.waiting.Len() > 0 && l.waiting.list[0].begins <= now {
		g := l.waiting.list[0]
		heap.Remove(&l.waiting, g.index)
		l.complete.add(g)
	}
	for l.complete.Len() > 0 && !l.complete.list[0].mayBegin(now) {
		l.place(l.complete.list[0])
	}
}

// lineHeap is a heap of lines. It implements [heap.Interface].
type lineHeap struct {
	list   []*batchLine
	before func(a, b *batchLine) bool
}

func (h *lineHeap) add(g *batchLine) {
	g.heap = h
	heap.Push(h, g)
}

// Len implements heap.Interface.
func (h *lineHeap) Len() int { return len(h.list) }

// Less implements heap.Interface.
func (h *lineHeap) Less(i, j int) bool { return h.before(h.list[i], h.list[j]) }

// Swap implements heap.Interface.
func (h *lineHeap) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].index, h.list[j].index = i, j
}

// Push implements heap.Interface.
func (h *lineHeap) Push(x any) {
	g := x.(*batchLine)
	g.index = len(h.list)
	h.list = append(h.list, g)
}

// Pop implements heap.Interface.
func (h *lineHeap) Pop() any {
	last := len(h.list) - 1
	g := h.list[last]
	h.list[last], h.list = nil, h.list[:last]
	g.heap = nil
	return g
}
