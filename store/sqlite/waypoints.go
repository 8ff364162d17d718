package sqlite

import (
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/workitem"
)

// What bounds the memory of waypoints.
const (
	wayRoots = 16        // root cases
	wayMost  = 1_000_000 // entries of a walk that is remembered
)

// wayApart is how many entries lie between two waypoints of a root case. Shorter walks are not worth remembering.
var wayApart = 256 // tests have less

// waypoints remember positions in the chains of long histories. A chain leads from the newest entry back, so the entries that follow one far back are
// found by walking all that came since; from a waypoint a little after it the walk is short. They are hints: an entry of a chain is one for good, but
// a file may be exchanged, so what is found from a waypoint is used only if it is as much as was asked for. The zero value is ready for use.
//
// A history of 100,000 entries, of which the page behind the 500th is asked for, a hundred entries:
//
//	without    100,000 <- 99,999 <- ... <- 501       99,500 steps
//	with       a waypoint every 256:  768 <- ... <- 501
type waypoints struct {
	mu    sync.Mutex
	roots []way // the one that was used last is the last
}

// way is the positions that are remembered of a root case, the oldest first.
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

// note remembers some of the positions of a part of a chain, the oldest first, instead of those that were remembered of that part.
func (p *waypoints) note(root workitem.CaseID, seqs []int64) {
	// A short walk is as fast as a search here. A very long one would hold megabytes for a history that is looked at once.
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

// beyond is a waypoint that lies so many entries after a position, and not many more; 0 if none is known.
func (p *waypoints) beyond(root workitem.CaseID, after int64, entries int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.take(root)
	if w.seqs == nil {
		return 0
	}
	p.roots = append(p.roots, w)
	i, _ := slices.BinarySearch(w.seqs, after+1)
	if i += (entries-1)/wayApart + 1; i >= len(w.seqs) { // entries may be as many as an int can be
		return 0
	}
	return w.seqs[i]
}
