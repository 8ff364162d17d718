package source

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The bounds of an [Examiner]. To examine a root case takes less than 0.2 ms.
const (
	partRoots    = 100              // root cases that are examined in one view
	passParts    = 20               // such parts of a pass that runs beside the pages
	passTime     = 2 * time.Second  // how long it may take
	betweenSmall = 2 * time.Second  // from one pass to the next, if one part has all live root cases
	betweenLarge = 10 * time.Second // otherwise
	maxStranded  = 50_000           // root cases with a stranded case that are remembered
)

// Examiner looks for stranded cases when a page or an answer needs their number, and remembers what it has found, for
// all of them. Of many live cases it examines a part at a time, and continues where it stopped.
type Examiner struct {
	Backend Backend
	Log     *slog.Logger

	mu      sync.Mutex
	busy    bool
	last    time.Time               // when the last pass began; zero before the first
	at      Examination             // of the last complete round, or of the first one so far; without Cases
	found   map[workitem.CaseID]int // the number of stranded cases, by root case
	after   workitem.CaseID         // the last root case that the present round has examined; zero at its begin
	began   time.Time               // when the present round began
	reached int                     // the number of root cases that it has examined
}

// Examination says how many cases are stranded, and how much of that is known.
type Examination struct {
	Cases    int       `json:"cases"`    // live cases that are stranded by something else than an incident; those are listed by themselves
	Examined int       `json:"examined"` // the live root cases that were examined
	All      bool      `json:"all"`      // whether these are all
	Since    time.Time `json:"since"`    // each of them was examined at this time or later
}

// Look returns what is known of stranded cases. If the last pass is some seconds ago, it begins the next one: within the
// view if one part has all live root cases or nothing is known, and beside the pages otherwise.
func (e *Examiner) Look(ctx context.Context, r store.Reader) (Examination, error) {
	now := e.Backend.Now()
	begins, beside := e.begin(now)
	switch {
	case !begins:
		return e.known(), nil
	case beside:
		go e.pass(now)
		return e.known(), nil
	}
	defer e.end()
	_, err := e.part(ctx, store.ViewerOf(r), now)
	return e.known(), err
}

// begin reports whether a pass begins, and whether it runs beside the pages.
func (e *Examiner) begin(now time.Time) (begins, beside bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	many := !e.at.Since.IsZero() && (!e.at.All || e.at.Examined > partRoots)
	pause := betweenSmall
	if many {
		pause = betweenLarge
	}
	if age := now.Sub(e.last); e.busy || !e.last.IsZero() && age >= 0 && age < pause {
		return false, false
	}
	e.busy, e.last = true, now
	return true, many
}

func (e *Examiner) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy = false
}

func (e *Examiner) known() Examination {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.at
	for _, n := range e.found {
		known.Cases += n
	}
	return known
}

// Roots returns root cases in which stranded cases were found, oldest first and at most so many.
func (e *Examiner) Roots(most int) []workitem.CaseID {
	e.mu.Lock()
	defer e.mu.Unlock()
	roots := make([]workitem.CaseID, 0, len(e.found))
	for root := range e.found {
		roots = append(roots, root)
	}
	slices.SortFunc(roots, func(a, b workitem.CaseID) int { return bytes.Compare(a[:], b[:]) })
	return roots[:min(most, len(roots))]
}

// pass examines several parts beside the pages, for which no request waits.
func (e *Examiner) pass(now time.Time) {
	defer e.end()
	defer func() {
		if p := recover(); p != nil {
			e.Log.Error("tasq pages: the search for stranded cases panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), passTime)
	defer cancel()
	for range passParts {
		if more, err := e.part(ctx, e.Backend, now); err != nil && ctx.Err() == nil {
			e.Log.Warn("tasq pages: the search for stranded cases is not complete", "error", err)
			return
		} else if err != nil || !more {
			return
		}
	}
}

// part examines the next live root cases, and reports whether there may be more in this round.
func (e *Examiner) part(ctx context.Context, v store.Viewer, now time.Time) (more bool, err error) {
	e.mu.Lock()
	after := e.after
	e.mu.Unlock()
	roots, err := liveRoots(ctx, v, after)
	if err != nil {
		return false, err
	}
	found := make(map[workitem.CaseID]map[workitem.CaseID]bool)
	for s, err := range why.Stranded(ctx, v, why.Search{Here: e.Backend.Here(), Now: now, Roots: roots}) {
		if err != nil {
			return false, fmt.Errorf("look for stranded cases: %w", err)
		}
		if s.Cause == why.CauseIncident {
			continue
		}
		if found[s.Root] == nil {
			found[s.Root] = make(map[workitem.CaseID]bool)
		}
		found[s.Root][s.Case] = true
	}
	return e.record(roots, found, now), nil
}

// liveRoots returns the next live root cases after one.
func liveRoots(ctx context.Context, v store.Viewer, after workitem.CaseID) ([]workitem.CaseID, error) {
	roots := []workitem.CaseID{}
	err := v.View(ctx, func(r store.Reader) error {
		cases, err := r.Cases(ctx, store.CaseFilter{RootOnly: true, States: []state.CaseState{state.CaseStarted}, Page: store.Page{Limit: partRoots, After: after.String()}})
		for _, c := range cases {
			roots = append(roots, c.ID)
		}
		return err
	})
	return roots, err
}

// record remembers what a part has found instead of what was known of the root cases in its range, some of which may have ended.
func (e *Examiner) record(roots []workitem.CaseID, found map[workitem.CaseID]map[workitem.CaseID]bool, now time.Time) (more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.after.IsZero() {
		e.began, e.reached = now, 0
	}
	more = len(roots) == partRoots
	for root := range e.found {
		if bytes.Compare(root[:], e.after[:]) > 0 && (!more || bytes.Compare(root[:], roots[len(roots)-1][:]) <= 0) {
			delete(e.found, root)
		}
	}
	if e.found == nil {
		e.found = make(map[workitem.CaseID]int)
	}
	for root, cases := range found {
		if len(e.found) < maxStranded {
			e.found[root] = len(cases)
		}
	}
	e.reached += len(roots)
	if !more || !e.at.All {
		e.at = Examination{Examined: e.reached, All: !more, Since: e.began}
	}
	e.after = workitem.CaseID{}
	if more {
		e.after = roots[len(roots)-1]
	}
	return more
}
