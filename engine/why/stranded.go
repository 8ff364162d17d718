package why

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Cause says why a case does not end. The values are stable.
type Cause string

// The causes of a [StrandedCase]. The cause of a blocked wait has the value of its [Block].
const (
	CauseDeadEnd   Cause = "dead-end"   // no run completes it from its present marking
	CauseIdle      Cause = "idle"       // nothing of it is in progress
	CauseIncident  Cause = "incident"   // a person has to decide
	CauseSuspended Cause = "suspended"  // the case or one above it is suspended, and has waiting work
	CausePaused    Cause = "paused"     // the queue of due work is paused
	CauseLimited   Cause = "limited"    // due work needs a limit that is set to 0
	CauseNotLoaded Cause = "not-loaded" // no open engine has its definition
	CauseNoWorkers Cause = "no-workers" // no process runs due work of its queue
	CauseOverdue   Cause = "overdue"    // work of an engine itself is late: no engine is open, or none has the definition
	CauseForgotten Cause = "forgotten"  // it has waited for an event or a topic, without a deadline, for longer than Search.Older
)

// StrandedCase is a live case that does not end by itself, nor by the work that it offers.
type StrandedCase struct {
	Case     workitem.CaseID `json:"case"`
	Root     workitem.CaseID `json:"root"`
	Workflow string          `json:"workflow"`
	Version  string          `json:"version,omitempty"`
	Cause    Cause           `json:"cause"`
	Since    time.Time       `json:"since,omitzero"` // zero if it is not known
	Reason   string          `json:"reason"`
	Repair   string          `json:"repair"` // how to repair it: a command of tasq, or a description
}

// DefaultLate is the delay from which on due work counts as late: an open engine with a free worker starts it within
// milliseconds.
const DefaultLate = 10 * time.Second

// Search configures a search for cases that do not end.
type Search struct {
	Here               // what the process that asks can do; the zero value judges only by what is stored
	Now  time.Time     // the time of the search
	Late time.Duration // the delay from which on due work counts as late; 0 is DefaultLate
	// Older leaves out what has waited for less time. It also adds cases that have waited for so long for an event
	// or a topic without a deadline, whose sender may be gone. 0 lists everything except these.
	Older time.Duration
	// Most bounds the number of root cases that are examined, oldest first. If there are more, the search ends with
	// [ErrMore]. 0 is no bound.
	Most int
	// Roots are the root cases that are examined, in this order; nil is all. Those that have ended and left no incident
	// are not listed.
	Roots []workitem.CaseID
}

// ErrMore says that a search has examined as many cases as Search.Most allows.
var ErrMore = errors.New("there are more cases to look at")

// Stranded yields the live cases that no run can complete from their present marking, and those that neither work in
// progress nor a person will move, each with the cause and the repair. Work is in progress if there is a job, a timer
// or an event for it, or a work item that is offered to a person, unless the case is suspended, its queue is paused or
// has no workers, a limit is set to 0, or an incident needs a decision. Several root cases are read in one view. A case
// is not listed as a dead end if the search for a run exceeded its budget. After the live cases come those that have
// ended and left an incident.
func Stranded(ctx context.Context, v store.Viewer, s Search) iter.Seq2[StrandedCase, error] {
	return func(yield func(StrandedCase, error) bool) {
		x := &examination{Search: s, busy: make(map[string]bool), ways: make(map[string]string)}
		if x.Late == 0 {
			x.Late = DefaultLate
		}
		err := v.View(ctx, func(r store.Reader) (err error) {
			if x.Here, err = x.WithFleet(ctx, r); err != nil {
				return err
			}
			return x.readControls(ctx, r)
		})
		if err != nil {
			yield(StrandedCase{}, err)
			return
		}
		for some, err := range x.parts(x.roots(ctx, v)) {
			var found []StrandedCase
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
				yield(StrandedCase{}, err)
				return
			}
		}
	}
}

// rootsPerView is the number of root cases that are read in one view. A view is a snapshot, which keeps a store from
// reclaiming what was written since; so a search of many cases uses many short ones, and a case that ends between two of
// them is not found.
const rootsPerView = 50

// parts yields groups of root cases that are examined in one view. An error comes with the cases before it; it is
// [ErrMore] if Search.Most is exceeded.
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
			if some = append(some, root); len(some) == rootsPerView {
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
	takes  map[string]store.TakesValue
	hours  map[string]workflow.Hours
	batch  map[string]map[string]workflow.Batching
	named  map[string][]string // the fingerprints of the definitions of each name
	busy   map[string]bool     // by queue: whether some of its jobs run
	key    []byte
	ways   map[string]string // results of deadEnd by marking and definition
}

// maxWays bounds the number of cached results.
const maxWays = 10_000

// deadEnd returns why no run completes a case; "" if one does, or if it is not known. The result is cached by the
// definition, the marking and the started tasks: of a hundred thousand cases most are in a state that others are in
// too, and the search for a run costs more than everything else.
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
		text = way.deadlock()
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
		x.takes, err = store.ReadTakes(settings)
	}
	if err == nil {
		x.hours, x.batch, err = readConditions(ctx, r)
	}
	if err == nil && !x.Unknown() {
		x.named, err = namesOf(ctx, r)
	}
	return err
}

// roots yields the root cases to examine: those of Search.Roots, or the live ones, and then those that have ended and
// left an incident.
func (x *examination) roots(ctx context.Context, v store.Viewer) iter.Seq2[workitem.CaseID, error] {
	return func(yield func(workitem.CaseID, error) bool) {
		if x.Roots != nil {
			for _, root := range x.Roots {
				if !yield(root, nil) {
					return
				}
			}
			return
		}
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

// look examines the trees of root cases. It skips those that were removed meanwhile.
func (x *examination) look(ctx context.Context, r store.Finder, roots []workitem.CaseID) (found []StrandedCase, err error) {
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
func (x *examination) lookAt(ctx context.Context, r store.Finder, tree *state.Tree) ([]StrandedCase, error) {
	in := Input{Here: x.Here, Tree: tree, Case: tree.Root, Now: x.Now, Paused: x.queues, Hours: x.hours, Batches: x.batch, Named: x.named, Set: x.limits, Takes: x.takes}
	l := &treeSearch{examination: x, tree: tree}
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
