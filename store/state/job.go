package state

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// JobState is the state of a job.
type JobState uint8

// The states of a job.
const (
	JobNone     JobState = iota
	JobPending           // waits for its time or for a worker
	JobRunning           // a worker has it
	JobWaiting           // suspended until one of its steps ends; a JobStart: until the cases before its own have ended
	JobDone              // succeeded, or its failure was passed to its work item
	JobCanceled          // its owner ended first
	JobFailed            // given up; see its failure
)

var jobStateNames = [...]string{"none", "pending", "running", "waiting", "done", "canceled", "failed"}

// String returns the name of the state.
func (s JobState) String() string { return word(jobStateNames[:], int(s)) }

// Live reports whether the job has not ended.
func (s JobState) Live() bool { return s >= JobPending && s <= JobWaiting }

// ParseJobState parses the name of a state.
func ParseJobState(w string) (JobState, error) {
	i, err := parseWord("state of a job", jobStateNames[:], w)
	return JobState(i), err
}

// Job kinds: what happens when a job is due.
const (
	JobRun     = "run"     // the Run function of the item's task, in a worker
	JobTimer   = "timer"   // a timer of the task, in a transaction
	JobWake    = "wake"    // nothing: it marks the time from which a person may work on the item
	JobCall    = "call"    // a named function of the workflow, in a worker
	JobStart   = "start"   // the first tasks of a case that begins later, in a transaction
	JobHandler = "handler" // a completion handler of the workflow, in a transaction

	// JobIncident needs a decision of a person: it is live until its work is retried, skipped or ended. Its name is the
	// kind of incident, its failure the cause, and its owner the blocked work.
	JobIncident = "incident"
)

// Kinds of incidents, the names of their jobs.
const (
	IncidentAttempts = "attempts"  // the attempts of an item are used up, and its policy keeps the task active
	IncidentCase     = "case"      // a child case failed, and the policy of its task keeps it active; the input has its id
	IncidentCrash    = "crash"     // a job crashed its process too often
	IncidentResult   = "result"    // the kernel refuses every result of a job
	IncidentTimer    = "timer"     // a timer was given up
	IncidentFunction = "function"  // a function that a callback scheduled was given up
	IncidentHandler  = "handler"   // a completion handler was given up
	IncidentOrJoin   = "undecided" // the search of an or-join ran out of its budget
	IncidentRunaway  = "runaway"   // the command of a job exceeded the bounds of the kernel: a loop without a way out

	// IncidentDefinition is the kind of an incident that no job stands for: no open engine has a definition that live cases
	// need. It is computed when incidents are listed.
	IncidentDefinition = "definition"
)

// IncidentKinds lists the kinds of incidents.
var IncidentKinds = []string{IncidentAttempts, IncidentCase, IncidentCrash, IncidentResult, IncidentTimer, IncidentFunction, IncidentHandler,
	IncidentOrJoin, IncidentRunaway, IncidentDefinition}

// Job is work of a worker, or work at a later time, owned by a work item, an activation of a task, or a case. It is
// canceled with its owner.
type Job struct {
	ID         workitem.JobID
	Case       workitem.CaseID
	Root       workitem.CaseID
	Task       string      // "" if the case owns it
	Generation int         // of the owning activation; 0 if the case owns it
	Item       workitem.ID // zero if an activation or the case owns it
	Kind       string      // one of the Job… constants
	Name       string      // of the timer or function; "" for the others
	Queue      string
	Priority   int
	Input      json.RawMessage // for JobCall; a JobRun reads its item's
	Detached   bool            // outlives its case

	State   JobState
	Due     time.Time // for a suspended job: when it resumes at the latest; zero if only an event or a child case resumes it
	Attempt int       // the number of attempts, without crashes
	Crashes int       // the number of crashes of its workers
	Fence   int64     // increases with every claim; a result with an older fence is refused
	Owner   string    // the engine that claimed it; "" while pending
	Lease   time.Time
	Failure *workitem.Failure

	Created time.Time
	Ended   time.Time
}

// Owned reports whether the job belongs to an activation of a task, or to an item of it.
func (j *Job) Owned(task string, generation int) bool {
	return j.Task == task && j.Generation == generation
}

// Jobs is the live jobs of a case, in two orders: by id, which is the order of creation, and by item, since the end of
// an item ends its jobs, and a task may have a hundred thousand of them.
type Jobs struct {
	List[*Job]
	byItem List[*jobOfItem]
}

// jobOfItem is a job in the order by item, then by its own id.
type jobOfItem Job

// Get returns a live job; nil if there is none with that id.
func (l Jobs) Get(id workitem.JobID) *Job { return l.get(sortKey{id}) }

// Of returns the live jobs of an item, oldest first.
func (l Jobs) Of(item workitem.ID) []*Job {
	if l.byItem.Len() == 0 {
		return nil
	}
	var jobs []*Job
	for j := range l.byItem.from(sortKey{item}) {
		if j.Item != item {
			break
		}
		jobs = append(jobs, (*Job)(j))
	}
	return jobs
}

func (l Jobs) snapshot() Jobs {
	return Jobs{List: l.List.snapshot(), byItem: l.byItem.snapshot()}
}

func (l *Jobs) put(j *Job) {
	l.List.put(j)
	if !j.Item.IsZero() {
		l.byItem.put((*jobOfItem)(j))
	}
}

func (l *Jobs) remove(j *Job) {
	l.List.remove(sortKey{j.ID})
	l.byItem.remove(sortKey{j.Item, j.ID})
}
