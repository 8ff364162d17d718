package why

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Cause says what keeps a case from its end. The words are stable.
type Cause string

// The causes of a [Strand]. Of those of a wait that is blocked, the word is that of the [Block].
const (
	CauseDeadEnd   Cause = "dead-end"   // no run completes it from where it stands
	CauseIdle      Cause = "idle"       // nothing of it is under way
	CauseIncident  Cause = "incident"   // a person has to decide
	CauseSuspended Cause = "suspended"  // the case is suspended, or one above it, with work that waits
	CausePaused    Cause = "paused"     // the queue of due work is paused
	CauseLimited   Cause = "limited"    // due work needs a limit that is set to 0
	CauseNotLoaded Cause = "not-loaded" // the process that was asked does not have its definition
	CauseNoWorkers Cause = "no-workers" // no process does due work of its queue
	CauseOverdue   Cause = "overdue"    // what an engine does by itself is not done: none is open, or none has its definition
	CauseForgotten Cause = "forgotten"  // it has waited for an event, without a deadline, for as long as was asked for
)

// Strand is a case that does not come to its end by itself, nor by the work that it offers.
type Strand struct {
	Case     workitem.CaseID `json:"case"`
	Root     workitem.CaseID `json:"root"`
	Workflow string          `json:"workflow"`
	Version  string          `json:"version,omitempty"`
	Cause    Cause           `json:"cause"`
	Since    time.Time       `json:"since,omitzero"` // zero if that is not known
	Reason   string          `json:"reason"`
	Repair   string          `json:"repair"` // the act that repairs it: a command of tasq, or what to do
}

// DefaultLate is how late due work is at most before it counts as left alone: an engine that is open begins it within milliseconds, if it
// has a worker free.
const DefaultLate = 10 * time.Second

// Search says how cases that do not end are looked for.
type Search struct {
	Here               // what the process that asks can do; the zero value judges by what is stored alone
	Now  time.Time     // of the question
	Late time.Duration // how late due work must be before it counts as left alone; 0 is DefaultLate
	// Older leaves out what has stood for a shorter time. With it, those that have waited so long for an event without a deadline are
	// listed, too: who sends it may be gone. 0 lists all but them.
	Older time.Duration
	// Most bounds how many root cases are looked at, the oldest first. If there are more, the search ends with [ErrMore]. 0 is no bound.
	Most int
}

// ErrMore ends a search that has looked at as many cases as it may.
var ErrMore = errors.New("there are more cases to look at")

// Stranded lists the live cases that no run completes from where they stand, and those that no work under way and no person moves: each with the reason
// and the act that repairs it. Work is moved by a job, a timer or an event that is under way, or by a person whom a work item is offered to;
// it is not while the case is suspended, its queue is paused or has no workers, a limit is set to 0, or a person has to decide an
// incident. Some root cases at a time are looked at in one view. A case whose search for a run was given up is not listed as a dead end.
// Behind the live cases come those that have ended and left an incident behind.
func Stranded(ctx context.Context, v store.Viewer, s Search) iter.Seq2[Strand, error] {
	return func(yield func(Strand, error) bool) {
		x := &examination{Search: s, busy: make(map[string]bool), ways: make(map[string]string)}
		if x.Late == 0 {
			x.Late = DefaultLate
		}
		err := v.View(ctx, func(r store.Reader) error { return x.readControls(ctx, r) })
		if err != nil {
			yield(Strand{}, err)
			return
		}
		for some, err := range x.parts(x.roots(ctx, v)) {
			var found []Strand
			if len(some) > 0 {
				if e := v.View(ctx, func(r store.Reader) (err error) {
					found, err = x.look(ctx, r, some)
					return err
				}); e != nil {
					err = e
				}
			}
			for _, s := range found {
				if !yield(s, nil) {
					return
				}
			}
			if err != nil {
				yield(Strand{}, err)
				return
			}
		}
	}
}

// together is how many root cases are read in one view.
const together = 50

// parts gathers root cases that are looked at in one view. An error comes with those before it; it is [ErrMore] if there are more than may be looked at.
func (x *examination) parts(roots iter.Seq2[workitem.CaseID, error]) iter.Seq2[[]workitem.CaseID, error] {
	return func(yield func([]workitem.CaseID, error) bool) {
		var some []workitem.CaseID
		looked := 0
		for root, err := range roots {
			if looked++; err == nil && x.Most > 0 && looked > x.Most {
				err = ErrMore
			}
			if err != nil {
				yield(some, err)
				return
			}
			if some = append(some, root); len(some) == together {
				if !yield(some, nil) {
					return
				}
				some = nil
			}
		}
		if len(some) > 0 {
			yield(some, nil)
		}
	}
}

// examination is one search.
type examination struct {
	Search
	limits map[string]store.LimitValue
	queues map[string]store.QueueValue
	hours  map[string]workflow.Hours
	batch  map[string]map[string]workflow.Batching
	busy   map[string]bool // of each queue that was asked about: some of its jobs run
	key    []byte
	ways   map[string]string // by where a case stands, see deadEnd
}

// maxWays is how many places are remembered where cases stand.
const maxWays = 10_000

// deadEnd says why no run completes a case; "" if one does, or that is not known. Of a hundred thousand cases most stand where others do: at
// the same marking of the same definition, with the same tasks under way. The search for a run costs more than all else that is asked of them.
func (x *examination) deadEnd(c *state.Case) string {
	x.key = append(append(x.key[:0], c.Fingerprint...), 0)
	for _, n := range c.Marking {
		x.key = binary.AppendUvarint(x.key, uint64(n))
	}
	c.Busy().Each(func(t int) { x.key = binary.AppendUvarint(x.key, uint64(t)) })
	text, known := x.ways[string(x.key)]
	if known {
		return text
	}
	if way, _ := wayFrom(c); way.Decided && !way.Found {
		_, after, _ := strings.Cut(way.String(), ", and ")
		text, _, _ = strings.Cut(after, "; ")
	}
	if len(x.ways) >= maxWays {
		clear(x.ways)
	}
	x.ways[string(x.key)] = text
	return text
}

func (x *examination) readControls(ctx context.Context, r store.Reader) error {
	settings, err := r.Settings(ctx)
	if err == nil {
		x.limits, x.queues, err = store.ReadControls(settings)
	}
	if err == nil {
		x.hours, x.batch, err = readConditions(ctx, r)
	}
	return err
}

// roots lists the root cases to look at: the live ones, and then those that ended and left an incident.
func (x *examination) roots(ctx context.Context, v store.Viewer) iter.Seq2[workitem.CaseID, error] {
	return func(yield func(workitem.CaseID, error) bool) {
		live := store.CaseFilter{RootOnly: true, States: []state.CaseState{state.CaseStarted}}
		if x.Most > 0 {
			live.Limit = x.Most + 1
		}
		for c, err := range store.AllCases(ctx, v, live) {
			if err != nil {
				yield(workitem.CaseID{}, err)
				return
			}
			if !yield(c.ID, nil) {
				return
			}
		}
		left := make(map[workitem.CaseID]bool)
		for i, err := range store.Incidents(ctx, v, store.IncidentFilter{}) {
			if err != nil {
				yield(workitem.CaseID{}, err)
				return
			}
			if !i.Left || left[i.Root] {
				continue
			}
			if left[i.Root] = true; !yield(i.Root, nil) {
				return
			}
		}
	}
}

// look examines the trees of root cases. Those that were removed meanwhile are left out.
func (x *examination) look(ctx context.Context, r store.Finder, roots []workitem.CaseID) (found []Strand, err error) {
	trees, err := r.Trees(ctx, roots)
	if err != nil {
		return nil, err
	}
	for _, tree := range trees {
		of, err := x.lookAt(ctx, r, tree)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", tree.Root, err)
		}
		found = append(found, of...)
	}
	return found, nil
}

// lookAt examines the cases of one tree.
func (x *examination) lookAt(ctx context.Context, r store.Finder, tree *state.Tree) ([]Strand, error) {
	in := Input{Here: x.Here, Tree: tree, Case: tree.Root, Now: x.Now, Paused: x.queues, Hours: x.hours, Batches: x.batch}
	l := &looking{examination: x, tree: tree}
	answer := Explain(in)
	for i := range answer.Waits {
		if err := l.wait(ctx, r, &answer.Waits[i]); err != nil {
			return nil, err
		}
	}
	tree.Each(func(c *state.Case) {
		if c.State.Final() {
			return
		}
		if text := x.deadEnd(c); text != "" {
			l.add(c.ID, CauseDeadEnd, time.Time{}, text, fmt.Sprintf("tasq case move %s FROM TO, or tasq case cancel %[1]s", c.ID))
		}
	})
	return l.found, nil
}
