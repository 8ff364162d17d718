// Package past reconstructs past states of cases. It keeps some states in memory, so that a nearby state is cheap.
package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The bounds of the memory.
const (
	maxRoots    = 8      // histories in memory
	maxMarks    = 64     // states of one history
	maxCases    = 20_000 // cases in all states of one history
	minInterval = 250    // entries between two states; doubled each time there are too many states
)

// The bounds of Prepare.
const (
	preparePart  = 2_000            // entries that are read in one view
	prepareLimit = 30 * time.Second // for the whole history
	prepareAgain = 5 * time.Minute  // the interval after which a history that has grown is prepared again
)

var (
	errPart = errors.New("the part is read")
	errAll  = errors.New("all is read")
)

// Memory keeps states of the histories that were used last. The zero value is ready for use; it is safe for concurrent
// use.
type Memory struct {
	mu    sync.Mutex
	roots []*history // the most recently used is the last
	busy  bool       // Prepare is running
}

// history has the states of one root case. The journal is only appended to, so a state never becomes invalid.
type history struct {
	root     workitem.CaseID
	interval int    // entries between two marks
	marks    []mark // by position
	cases    int
	prepared time.Time // the start of the last Prepare
}

// mark is the state after an entry.
type mark struct {
	seq   int64
	cases []*state.Case // they are not modified
}

// At returns the tree of a case after the entry at a position, as [store.At] does. The caller may modify it.
func (m *Memory) At(ctx context.Context, r store.Reader, id workitem.CaseID, seq int64) (*state.Tree, error) {
	root, err := store.RootOfCase(ctx, r, id)
	if err != nil {
		return nil, err
	}
	tree := state.NewTree(m.before(root, seq)...)
	since := 0
	err = store.Replay(ctx, r, root, tree, store.Moment{Seq: seq}, func(e *store.Entry) error {
		if since++; since >= minInterval && m.keep(root, e.Seq, since, tree) {
			since = 0
		}
		return ctx.Err()
	})
	if err == nil && tree.Case(id) == nil {
		err = fmt.Errorf("it did not exist at that time: %w", store.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", id, err)
	}
	return tree, nil
}

// Prepare keeps states up to a position, in the background. A user who opens a long history may look at earlier states
// next, and the first such request would replay all entries before. Prepare does nothing if the history was prepared
// within prepareAgain before now, or while another one is prepared. It reads in short views.
func (m *Memory) Prepare(v store.Viewer, root workitem.CaseID, until int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.history(root)
	if m.busy || now.Sub(h.prepared) < prepareAgain {
		return
	}
	m.busy, h.prepared = true, now
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), prepareLimit)
		defer cancel()
		m.prepare(ctx, v, root, until)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy = false
	}()
}

// prepare replays a history in parts. It ignores errors, which the request of an earlier state reports.
func (m *Memory) prepare(ctx context.Context, v store.Viewer, root workitem.CaseID, until int64) {
	tree, since, read := state.NewTree(m.before(root, until)...), 0, 0
	step := func(e *store.Entry) error {
		if since++; since >= minInterval && m.keep(root, e.Seq, since, tree) {
			since = 0
		}
		if read++; read%preparePart == 0 {
			return errPart
		}
		if e.Seq >= until {
			return errAll
		}
		return ctx.Err()
	}
	for err := errPart; errors.Is(err, errPart); {
		// With an upper bound, a store may have to search for each part from the end of the history.
		err = v.View(ctx, func(r store.Reader) error { return store.Replay(ctx, r, root, tree, store.Moment{}, step) })
	}
}

// before returns the last mark up to a position; nil if there is none.
func (m *Memory) before(root workitem.CaseID, seq int64) []*state.Case {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.history(root)
	for _, at := range slices.Backward(h.marks) {
		if at.seq <= seq {
			return at.cases
		}
	}
	return nil
}

// keep adds a mark, if enough entries lie between it and the one before.
func (m *Memory) keep(root workitem.CaseID, seq int64, since int, tree *state.Tree) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.history(root)
	i, there := slices.BinarySearchFunc(h.marks, seq, func(at mark, seq int64) int { return cmp.Compare(at.seq, seq) })
	if since < h.interval || there || tree.Len() > maxCases/4 {
		return false
	}
	h.marks = slices.Insert(h.marks, i, mark{seq, tree.Snapshot()})
	h.cases += tree.Len()
	if len(h.marks) > maxMarks || h.cases > maxCases {
		h.thin()
	}
	return true
}

// thin drops every other mark.
func (h *history) thin() {
	var kept []mark
	h.interval, h.cases = 2*h.interval, 0
	for i, at := range h.marks {
		if i%2 == 1 {
			kept = append(kept, at)
			h.cases += len(at.cases)
		}
	}
	h.marks = kept
}

// history returns the history of a root case, creates it if necessary, and drops the least recently used one.
func (m *Memory) history(root workitem.CaseID) *history {
	i := slices.IndexFunc(m.roots, func(h *history) bool { return h.root == root })
	h := &history{root: root, interval: minInterval}
	if i >= 0 {
		h = m.roots[i]
		m.roots = slices.Delete(m.roots, i, i+1)
	}
	m.roots = append(m.roots, h)
	if len(m.roots) > maxRoots {
		m.roots = slices.Delete(m.roots, 0, 1)
	}
	return h
}
