package store

import (
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
// A period is looked for by the ids, which rise with the time of creation, so it costs what it holds. What was created while the clock
// was set back by more than a minute has an id of a later time, and is not found by Before.
type CaseFilter struct {
	Page
	ID       workitem.CaseID
	Root     workitem.CaseID   // this root case and all its descendants
	Roots    []workitem.CaseID // these root cases and all their descendants; nil selects all
	Workflow string
	// Fingerprint selects the cases that run on exactly this definition.
	Fingerprint string
	States      []state.CaseState
	RootOnly    bool
	Suspended   bool   // only those that are suspended themselves
	Code        string // of the failure, or of the reason of a cancellation
	// Key is the business key of the case.
	Key string
	// Labels are values by name; the case has all of them.
	Labels map[string]string
	Before time.Time // created before
	Since  time.Time // created at or after

	// Removable selects the root cases that are kept until this time or an earlier one, and lists them by that: the
	// first is to be removed first. One with a live job is left out: one that is still to be done, or the incident of one that
	// a teardown or a completion left behind and that failed, since a person should look at it.
	Removable time.Time
}

// ItemFilter selects work items; a zero field selects all. They are listed in the order of their creation, and those of
// one queue in the order in which they are to be done, see [ItemFilter.ByPriority].
type ItemFilter struct {
	Page
	ID       workitem.ID
	Case     workitem.CaseID
	Root     workitem.CaseID
	Roots    []workitem.CaseID // these root cases and all their descendants; nil selects all
	Workflow string
	Task     string
	Queue    *string // "" is the default queue, nil any
	States   []workitem.State
	Attempt  int       // at least this attempt; 0 selects all
	Code     string    // of the failure
	Before   time.Time // created before; see [CaseFilter]
	Since    time.Time // created at or after
}

// ByPriority reports whether the items are listed by priority, the highest first, and oldest first where that is the same:
// those of one queue are, unless the newest are asked for first. A cursor stays good as long as its row is there. With
// States that are not final, a page costs what it returns; with others, the whole queue is looked through.
func (f ItemFilter) ByPriority() bool { return f.Queue != nil && !f.Desc }

// JobFilter selects jobs; a zero field selects all. Like everything with a cursor, jobs are listed in the order of
// their creation, which is that of their ids.
type JobFilter struct {
	Page
	ID     workitem.JobID
	Case   workitem.CaseID
	Root   workitem.CaseID
	Roots  []workitem.CaseID // these root cases and all their descendants; nil selects all
	Item   workitem.ID
	States []state.JobState

	Workflow string // of the job's case
	Task     string // that owns the job, or whose item does
	Kind     string
	Queue    *string
	Due      time.Time // due at or before; a job that waits for an event alone never is
}

// JournalFilter selects journal entries; a zero field selects all.
type JournalFilter struct {
	Root  workitem.CaseID
	Roots []workitem.CaseID // of these root cases; nil selects all
	After int64             // positions above this one; with Desc below it, and all for 0
	Limit int               // 0 means DefaultLimit
	Until int64             // up to this position; 0 is no bound
	By    string            // asked for by this actor; "" selects all
	Named bool              // asked for by somebody: what has an actor
	Desc  bool              // newest first

	// Settled leaves out the entries before which others may still appear: those of transactions that are under way. Who follows the
	// journal of all cases by position reads so, or it goes past what another engine commits later. The entries of one root case
	// appear in their order anyhow.
	Settled bool
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
