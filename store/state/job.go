package state

import (
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// JobState is where a job stands.
type JobState uint8

// The states of a job.
const (
	JobNone     JobState = iota
	JobPending           // waits for its time or for a worker
	JobRunning           // a worker has it
	JobWaiting           // gave its worker back until one of its steps ends; a JobStart: until the cases before its own have ended
	JobDone              // ended well, or its failure was handed to its work item
	JobCanceled          // its owner ended first
	JobFailed            // gave up; see its failure
)

var jobStateNames = [...]string{"none", "pending", "running", "waiting", "done", "canceled", "failed"}

// String returns the word for the state.
func (s JobState) String() string { return word(jobStateNames[:], int(s)) }

// Live reports whether the job is still to be done.
func (s JobState) Live() bool { return s >= JobPending && s <= JobWaiting }

// ParseJobState reads the word for a job's state.
func ParseJobState(w string) (JobState, error) {
	i, err := parseWord("state of a job", jobStateNames[:], w)
	return JobState(i), err
}

// Job kinds: what happens when a job is due.
const (
	JobRun   = "run"   // the Run function of the item's task, in a worker
	JobTimer = "timer" // a timer of the task, in a transaction
	JobWake  = "wake"  // nothing but the passing of time: the item may be worked on
	JobCall  = "call"  // a named function of the workflow, in a worker
	JobStart = "start" // the first tasks of a case that was started for later, in a transaction
	JobTell  = "tell"  // a named handler of the workflow answers the end of the case, in a transaction

	// JobIncident is what a person decides: it waits until the work that it is about is tried again, skipped or ended. Its name
	// says what kind of incident it is, its failure why, and its owner what waits.
	JobIncident = "incident"
)

// Kinds of incidents, the names of their jobs.
const (
	IncidentAttempts = "attempts"  // the attempts of an item are used up, and its policy holds the task open
	IncidentCase     = "case"      // a child case failed, and the policy of its task holds it open; the input has its id
	IncidentCrash    = "crash"     // a job took its process down too often
	IncidentResult   = "result"    // the process refuses every result of a job
	IncidentTimer    = "timer"     // a timer gave up
	IncidentFunction = "function"  // a function that a callback scheduled gave up
	IncidentHandler  = "handler"   // a handler of the end of a case gave up
	IncidentOrJoin   = "undecided" // the search of an or-join ran out of its budget
)

// IncidentKinds lists the kinds of incidents.
var IncidentKinds = []string{IncidentAttempts, IncidentCase, IncidentCrash, IncidentResult, IncidentTimer, IncidentFunction, IncidentHandler,
	IncidentOrJoin}

// Job is outside work, or work for later, owned by a work item, an activation of a task, or a case. It is canceled with
// its owner.
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
	Detached   bool            // outlives its case: work that a teardown left behind

	State   JobState
	Due     time.Time // of a waiting one: when it goes on at the latest; zero if only an event or a child can end its wait
	Attempt int       // how often it was tried, crashes not counted
	Crashes int       // how often its worker died with it
	Fence   int64     // rises with every claim; a result with an older fence is refused
	Owner   string    // the engine that claimed it; "" while pending
	Lease   time.Time
	Failure *workitem.Failure

	Created time.Time
	Ended   time.Time
}

// Owned reports whether the job belongs to the given activation of a task, or to an item of it.
func (j *Job) Owned(task string, generation int) bool {
	return j.Task == task && j.Generation == generation
}

// Jobs are the live jobs of a case, in two orders: by id, which is that of their creation, and by item, since every end of
// an item ends its jobs and a task may have a hundred thousand of them.
type Jobs struct {
	List[*Job]
	byItem List[*jobOfItem]
}

// jobOfItem is a job in an order by item, then by its own id.
type jobOfItem Job

// Get finds a live job; nil if it is not there.
func (l Jobs) Get(id workitem.JobID) *Job { return l.get(sortKey{id}) }

// Of lists the live jobs of an item, oldest first.
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
