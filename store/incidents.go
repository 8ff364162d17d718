package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Incident is work that needs a person's decision: an item without further attempts whose policy keeps its task open, an
// abandoned job, or an undecided or-join. It ends when the work is retried, skipped, ended or decided. An incident of the kind
// [state.IncidentDefinition] is about all live cases of a definition; it ends when a program with that is opened.
type Incident struct {
	ID         workitem.JobID
	Kind       string // one of the state.Incident… constants
	Case       workitem.CaseID
	Root       workitem.CaseID
	Task       string // "" if the case owns it
	Generation int
	Item       workitem.ID     // zero if it concerns no item
	Child      workitem.CaseID // the child case that failed; zero if it concerns none
	Job        *state.GivenUp  // the abandoned job; nil if it concerns none
	Left       bool            // its case has ended
	Failure    *workitem.Failure
	Since      time.Time

	// Definition is the definition that no open engine has; nil for incidents of other kinds. An incident with one belongs to no
	// case, and its Since is the earliest time at which it can have begun.
	Definition *MissingDefinition
}

// Again reports whether [github.com/tasq-dev/tasq/workflow.RetryIncident] resolves the incident: it is about a job that can be run again by
// itself, or about a child case. Others are resolved by commands on their work item.
func (i *Incident) Again() bool { return i.Job.Again() || !i.Child.IsZero() }

// MissingDefinition is a definition that live cases need and no open engine has.
type MissingDefinition struct {
	Workflow    string
	Version     string
	Fingerprint string
	Cases       int64 // live ones, including child cases
}

// IncidentHead is what groups an incident with others of the same cause. It does not change as long as the incident is open.
type IncidentHead struct {
	ID          workitem.JobID
	Workflow    string // of its case, like the fingerprint of the definition
	Fingerprint string
	Task        string
	Kind        string
	Code        string // of the failure, like the message
	Message     string
	Since       time.Time
}

// IncidentFilter selects incidents; a zero field selects all.
type IncidentFilter struct {
	Page
	Root     workitem.CaseID
	Item     workitem.ID
	Workflow string
	Task     *string // "" is none: a case or a job of it; nil any
	Kind     string
	Code     *string   // of the failure; "" is none, nil any
	Before   time.Time // since before
	Since    time.Time // since then or later
	// Key is the business key of the case or its root case, and Labels are values by name, all of which one of the two has.
	Key    string
	Labels map[string]string
}

// Incidents lists the stored incidents that match, in the order in which they arose; engine/why.Incidents also lists those of
// definitions. Kind, Code, Before and Since, and a Task of "", are applied to each incident that the other fields select, without an index; so
// are Key and Labels if more than 200 cases have them.
func Incidents(ctx context.Context, v Viewer, f IncidentFilter) iter.Seq2[*Incident, error] {
	return incidentsOf(ctx, v, f, fewCases)
}

// incidentsOf is Incidents that looks in the trees of the cases with the key and the labels, if there are at most few.
func incidentsOf(ctx context.Context, v Viewer, f IncidentFilter, few int) iter.Seq2[*Incident, error] {
	jobs := JobFilter{Root: f.Root, Item: f.Item, Workflow: f.Workflow, Kind: state.JobIncident,
		States: []state.JobState{state.JobWaiting}, Page: Page{After: f.After, Desc: f.Desc}}
	if f.Task != nil {
		jobs.Task = *f.Task
	}
	return func(yield func(*Incident, error) bool) {
		// With a limit of 0 the first incident makes it -1, and it is never 0 again: all are listed.
		left := f.Limit
		if f.ByCase() && f.Root.IsZero() {
			var err error
			if jobs.Roots, err = f.roots(ctx, v, few); err != nil {
				yield(nil, err)
				return
			}
		}
		for j, err := range f.ofCases(ctx, v, AllJobs(ctx, v, jobs)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(incidentOf(j), nil) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// OpenIncident returns the stored incident with an id; nil if there is none that is open.
func OpenIncident(ctx context.Context, r Finder, id workitem.JobID) (*Incident, error) {
	jobs, err := r.Jobs(ctx, JobFilter{ID: id, Kind: state.JobIncident, States: []state.JobState{state.JobWaiting}})
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	return incidentOf(jobs[0]), nil
}

// matches tests what a filter of jobs cannot express. That includes the task: an empty name selects jobs of any task
// there, and those without a task here.
func (f *IncidentFilter) matches(j *state.Job) bool {
	code := ""
	if j.Failure != nil {
		code = j.Failure.Code
	}
	return f.Selects(&IncidentHead{Kind: j.Name, Task: j.Task, Code: code, Since: j.Created})
}

// Selects reports whether the task, kind, code and time of an incident are those of the filter.
func (f *IncidentFilter) Selects(h *IncidentHead) bool {
	return (f.Kind == "" || f.Kind == h.Kind) && (f.Task == nil || *f.Task == h.Task) && (f.Code == nil || *f.Code == h.Code) && (f.Before.IsZero() || h.Since.Before(f.Before)) && !h.Since.Before(f.Since)
}

// IncidentsByID returns the open incidents with these ids, in the order of the ids. Those that have ended are omitted.
func IncidentsByID(ctx context.Context, r Finder, ids []workitem.JobID) ([]*Incident, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	jobs, err := r.Jobs(ctx, JobFilter{IDs: ids, Page: Page{Limit: len(ids)}}) // with a kind or a state another index may be used
	if err != nil {
		return nil, err
	}
	at := make(map[workitem.JobID]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	slices.SortFunc(jobs, func(a, b *state.Job) int { return cmp.Compare(at[a.ID], at[b.ID]) })
	all := make([]*Incident, 0, len(jobs))
	for _, j := range jobs {
		if j.Kind == state.JobIncident && j.State == state.JobWaiting {
			all = append(all, incidentOf(j))
		}
	}
	return all, nil
}

func incidentOf(j *state.Job) *Incident {
	about, err := state.SubjectOf(j)
	if err != nil {
		about = state.Subject{} // the integrity check reports it
	}
	return &Incident{ID: j.ID, Kind: j.Name, Case: j.Case, Root: j.Root, Task: j.Task, Generation: j.Generation, Item: j.Item,
		Child: about.Case, Job: about.Job, Left: j.Detached, Failure: j.Failure, Since: j.Created}
}
