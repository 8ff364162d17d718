package store

import (
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Page selects part of a listing. The zero value is the first [DefaultLimit] rows.
type Page struct {
	After string // cursor: the ID of the last row of the page before; "" for the first page
	Limit int    // at most so many rows; 0 means DefaultLimit
	Desc  bool   // newest first
}

// DefaultLimit is how many rows a query returns if none is given.
const DefaultLimit = 1000

// CaseFilter selects cases; a zero field selects all.
//
// Since and Before select by id, since ids increase with the time of creation, so the cost is proportional to the result. A case that
// was created while the clock was set back by more than a minute has an id of a later time, and Before does not find it.
type CaseFilter struct {
	Page
	ID       workitem.CaseID
	IDs      []workitem.CaseID // these; nil selects all
	Root     workitem.CaseID   // this root case and all its descendants
	Roots    []workitem.CaseID // these root cases and all their descendants; nil selects all
	Workflow string
	// Fingerprint selects the cases that run on exactly this definition.
	Fingerprint string
	States      []state.CaseState
	RootOnly    bool
	Suspended   bool    // only those that are suspended themselves
	Code        *string // of the failure, or of the reason of a cancellation; "" is a failure without a code, nil any case
	// Key is the business key of the case.
	Key string
	// Predecessors selects the cases that were started as a restart or a fork of one of these; nil selects all.
	Predecessors []workitem.CaseID
	// Labels are values by name; the case has all of them.
	Labels map[string]string
	Before time.Time // created before
	Since  time.Time // created at or after

	// Removable selects the root cases whose retention time ends at or before this time, and sorts them by that time. Cases
	// with a live job are skipped: a detached job that is still to run, or the incident of one that failed, which a person
	// should see.
	Removable time.Time
}

// ItemFilter selects work items; a zero field selects all. They are listed in the order of their creation; those of one
// queue by priority, see [ItemFilter.ByPriority].
type ItemFilter struct {
	Page
	ID       workitem.ID
	IDs      []workitem.ID // these; nil selects all
	Case     workitem.CaseID
	Root     workitem.CaseID
	Roots    []workitem.CaseID // these root cases and all their descendants; nil selects all
	Workflow string
	Task     string
	Queue    *string // "" is the default queue, nil any
	States   []workitem.State
	Holder   string    // started items that this actor holds: the items that they started, and have neither ended nor reset
	Attempt  int       // at least this attempt; 0 selects all
	Code     *string   // of the failure; "" is a failure without a code, nil any item
	Before   time.Time // created before; see [CaseFilter]
	Since    time.Time // created at or after
}

// ByPriority reports whether the items are listed by priority, the highest first, and by age within a priority. This is so
// for the items of one queue, unless Desc is set. A cursor is valid as long as its row exists. The cost of a page is
// proportional to its size.
//
// If final states are selected too, the items of the default queue are listed in the order of their creation: in most databases
// these are most of the items, and all of them would have to be sorted, or be in one more index. Such a page skips the items of
// other queues, so it is slow if nearly all items are in named queues.
func (f ItemFilter) ByPriority() bool {
	return f.Queue != nil && !f.Desc && (*f.Queue != "" || f.live())
}

// live reports whether the filter selects items in live states only.
func (f ItemFilter) live() bool {
	return len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s workitem.State) bool { return !s.Live() })
}

// JobFilter selects jobs; a zero field selects all. Jobs are listed in the order of their creation, which is that
// of their ids.
type JobFilter struct {
	Page
	ID     workitem.JobID
	IDs    []workitem.JobID // these; nil selects all
	Case   workitem.CaseID
	Root   workitem.CaseID
	Roots  []workitem.CaseID // these root cases and all their descendants; nil selects all
	Item   workitem.ID
	States []state.JobState

	Workflow string // of the job's case
	Task     string // that owns the job, or whose item does
	Kind     string
	Queue    *string
	Due      time.Time // due at or before; never true for a job that only waits for an event
}

// JournalFilter selects journal entries; a zero field selects all.
type JournalFilter struct {
	Root  workitem.CaseID
	Roots []workitem.CaseID // of these root cases; nil selects all
	After int64             // positions above this one; with Desc below it, and all for 0
	From  int64             // from this position on, also with Desc; 0 is no bound
	Limit int               // 0 means DefaultLimit
	Until int64             // up to this position; 0 is no bound
	By    string            // only commands of this actor; "" selects all
	Named bool              // only commands with an actor
	Desc  bool              // newest first

	// Command selects the commands whose text begins with these words: "start", "item", "item complete". "" selects all.
	Command string
	Before  time.Time // committed before
	Since   time.Time // committed at or after

	// Settled omits entries before which others may still appear, from transactions in progress. A reader that follows the journal
	// of all cases by position needs it, so that it does not miss entries that another engine commits later. The entries of a single
	// root case always appear in order.
	Settled bool
}

// ByPosition reports whether the filter selects by position, root case and order alone, so that a store can find the entries
// without reading others.
func (f JournalFilter) ByPosition() bool {
	return f.By == "" && !f.Named && f.Command == "" && f.Before.IsZero() && f.Since.IsZero()
}

// Selects reports whether an entry matches the filter, apart from Limit and Settled.
func (f JournalFilter) Selects(e *Entry) bool {
	behind := e.Seq > f.After
	if f.Desc {
		behind = f.After == 0 || e.Seq < f.After
	}
	return behind && e.Seq >= f.From && (f.Until == 0 || e.Seq <= f.Until) && (f.Root.IsZero() || e.Root == f.Root) && (f.Roots == nil || slices.Contains(f.Roots, e.Root)) &&
		(f.By == "" || e.By == f.By) && (!f.Named || e.By != "") && (f.Command == "" || strings.HasPrefix(e.Command+" ", f.Command+" ")) &&
		(f.Before.IsZero() || e.At.Before(f.Before)) && !e.At.Before(f.Since)
}

// StepFilter selects steps; a zero field selects all.
type StepFilter struct {
	Page
	Case   workitem.CaseID
	Root   workitem.CaseID
	Roots  []workitem.CaseID // these root cases and all their descendants; nil selects all
	Job    workitem.JobID
	Item   workitem.ID
	Kind   workitem.StepKind
	Target string
	Topic  bool // only waits for a topic
	States []workitem.StepState
}

// MessageFilter selects the events that were sent to cases; a zero field selects all.
type MessageFilter struct {
	Page
	Case   workitem.CaseID
	Root   workitem.CaseID
	Roots  []workitem.CaseID // these root cases and all their descendants; nil selects all
	Name   string
	Unread bool // only those that no step has taken
}
