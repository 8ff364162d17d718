package sqlite

import (
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/workitem"
)

// Limits of the memory for waypoints.
const (
	wayRoots = 16        // root cases
	wayMost  = 1_000_000 // entries of a walk that is cached
)

// wayApart is the number of entries between two waypoints of a root case. Much shorter walks are not cached.
var wayApart = 256 // smaller in tests

// waypoints caches positions in the chains of long histories. A chain leads from the newest entry back, so finding old
// entries requires a walk over all newer ones; from a waypoint shortly after them the walk is short. Waypoints are
// hints: an entry never leaves its chain, but a file may be replaced, so the result of a walk from a waypoint is used
// only if it has as many entries as requested. The zero value is ready for use.
//
// For example, in a history of 100,000 entries, the page of a hundred entries after the 500th:
//
//	without    100,000 <- 99,999 <- ... <- 501       99,500 steps
//	with       a waypoint every 256:  768 <- ... <- 501
type waypoints struct {
	mu    sync.Mutex
	roots []way // the most recently used is last
}

// way has the cached positions of a root case, oldest first.
type way struct {
	root workitem.CaseID
	seqs []int64
}

// take removes and returns the waypoints of a root case.
func (p *waypoints) take(root workitem.CaseID) way {
	i := slices.IndexFunc(p.roots, func(w way) bool { return w.root == root })
	if i < 0 {
		return way{root: root}
	}
	w := p.roots[i]
	p.roots = slices.Delete(p.roots, i, i+1)
	return w
}

// note caches some of the positions of a part of a chain, oldest first, and replaces those cached before for that part.
func (p *waypoints) note(root workitem.CaseID, seqs []int64) {
	// A short walk is as fast as a search here. A very long one would use megabytes for a history that is read once.
	if len(seqs) < 4*wayApart || len(seqs) > wayMost {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.take(root)
	from, _ := slices.BinarySearch(w.seqs, seqs[0])
	to, _ := slices.BinarySearch(w.seqs, seqs[len(seqs)-1]+1)
	newer := w.seqs[to:]
	w.seqs = slices.Clip(w.seqs[:from])
	for i := wayApart - 1; i < len(seqs); i += wayApart {
		w.seqs = append(w.seqs, seqs[i])
	}
	w.seqs = append(w.seqs, newer...)
	if p.roots = append(p.roots, w); len(p.roots) > wayRoots {
		p.roots = slices.Delete(p.roots, 0, 1)
	}
}

// beyond returns a waypoint at least so many entries after a position, and not many more; 0 if none is known.
func (p *waypoints) beyond(root workitem.CaseID, after int64, entries int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.take(root)
	if w.seqs == nil {
		return 0
	}
	p.roots = append(p.roots, w)
	i, _ := slices.BinarySearch(w.seqs, after+1)
	if i += (entries-1)/wayApart + 1; i >= len(w.seqs) { // entries may be as large as an int can be
		return 0
	}
	return w.seqs[i]
}
