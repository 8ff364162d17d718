package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A problem that a person has to solve is a job of kind [state.JobIncident], which no engine runs. As a job it ends
// with the work that it is about, and is listed, counted and filtered like every job.

// What opens an incident, and what ends it. It also ends when the activation that it belongs to ends, as every job
// does:
//
//	name         opened when                                     resolved when
//	attempts     the policy holds a failed item's task open      the item is retried, skipped or given up
//	case         the same for a child case                       the child is resumed, or given up
//	crash        a job took its process down MaxCrashes times    the item is retried or skipped
//	result       the process refuses every result of a job       the item is retried or skipped
//	runaway      the command of a job exceeds the bounds          a person acts on what it was for
//	timer        a timer failed MaxTries times                   a person acts on what it was for
//	function     a scheduled function failed for good            a person acts on what it was for
//	handler      a handler of the case's end failed for good     it is called again, or the case is resumed
//	undecided    the search of an or-join ran out of budget      a later look decides it
//
// An incident that is not about a work item can also be resolved by [Repairs.RetryIncident], which runs its job again or resumes the
// child case.
// An incident of a detached job is detached too, and keeps the case from being removed by retention.

// ofCase returns the child case that an incident is about; zero if it is about none.
func ofCase(j *state.Job) workitem.CaseID {
	s, err := state.SubjectOf(j)
	if err != nil {
		return workitem.CaseID{}
	}
	return s.Case
}

func isIncident(j *state.Job) bool { return j.Kind == state.JobIncident }

// incidents opens and resolves incidents, and gives up the jobs that become one.
type incidents struct {
	*record
	agenda *agenda
	jobs   *jobs
	cases  caseEnder // a case whose start is given up
}

// open opens an incident, and notes it in the journal.
func (in *incidents) open(id workitem.CaseID, t net.TaskID, j *state.Job, text string) error {
	c := in.tree.Case(id)
	j.Kind, j.State, j.ID, j.Case, j.Root, j.Created = state.JobIncident, state.JobWaiting, in.ids.NewJobID(in.now), id, c.Root, in.now
	if err := in.emit(&state.JobOpened{Job: j}); err != nil {
		return err
	}
	if text == "" {
		return nil
	}
	return in.note(id, t, state.NoteIncident, text)
}

// ofJob opens the incident of a job that was given up, unless its owner has ended.
func (in *incidents) ofJob(c *state.Case, given *state.Job, f *workitem.Failure) error {
	// A start that is given up fails its case, and work of a case that has ended can no longer be repaired.
	if given.Kind == state.JobStart || in.tree.Case(c.ID).State.Final() && !given.Detached {
		return nil
	}
	j := &state.Job{Task: given.Task, Generation: given.Generation, Item: given.Item, Priority: given.Priority, Failure: f,
		Detached: given.Detached}
	var err error
	j.Input, err = state.Subject{Job: &state.GivenUp{ID: given.ID, Kind: given.Kind, Name: given.Name, Queue: given.Queue, Input: given.Input,
		Attempt: given.Attempt}}.Encode()
	if err != nil {
		return err
	}
	// A crash and a runaway are named by their cause and not by the kind of the job: the person has to look at the program,
	// or at the definition, and not at the work.
	switch {
	case f != nil && f.Code == workitem.CodeRunaway:
		j.Name = state.IncidentRunaway
	case f != nil && f.Code == workitem.CodeCrash:
		j.Name = state.IncidentCrash
	case given.Kind == state.JobHandler:
		j.Name = state.IncidentHandler
	case given.Kind == state.JobTimer:
		j.Name = state.IncidentTimer
	case given.Kind == state.JobCall:
		j.Name = state.IncidentFunction
	default:
		j.Name = state.IncidentResult
	}
	return in.open(c.ID, taskOf(c, given), j, "")
}

// IncidentNotOpen returns the error for an incident that is not there: an incident that has ended is a job no more.
func IncidentNotOpen(id workitem.JobID) error {
	return fmt.Errorf("incident %s is not open, since it has ended or there is none with this id: %w", id, ErrNotFound)
}

// ofOrJoin opens an incident for an undecided or-join, and ends it once the join is decided.
func (in *incidents) ofOrJoin(c *state.Case, t net.TaskID, undecided bool) error {
	if c.Net.Task(t).Join != net.Or {
		return nil
	}
	name := c.Net.TaskName(t)
	of := func(j *state.Job) bool { return j.Name == state.IncidentOrJoin && j.Task == name }
	if !undecided {
		return in.resolve(c.ID, of)
	}
	for j := range c.Jobs.All() {
		if isIncident(j) && of(j) {
			return nil
		}
	}
	failure := workitem.Failf(state.IncidentOrJoin, "or-join %s waits: its search ran out of its budget", name)
	failure.Retryable = false
	return in.open(c.ID, t, &state.Job{Name: state.IncidentOrJoin, Task: name, Generation: c.Tasks[t].Generation, Failure: failure}, "")
}

// resolve ends the matching incidents of a case, because what they are about continues. A case that does not exist has
// none.
// It iterates over a copy, since an incident that ends leaves the list of jobs.
func (in *incidents) resolve(id workitem.CaseID, matches func(*state.Job) bool) error {
	c := in.tree.Case(id)
	if c == nil || c.Jobs.Len() == 0 {
		return nil
	}
	for _, j := range c.Jobs.Slice() {
		if !isIncident(j) || !matches(j) {
			continue
		}
		if err := in.jobs.move(id, j, func(e *state.JobMoved) { e.To = state.JobDone }); err != nil {
			return err
		}
	}
	return nil
}

// giveUp fails a job for good, and opens an incident. The case continues: if it failed, a side effect would break the
// process. Only the start of a case is different.
func (in *incidents) giveUp(c *state.Case, j *state.Job, failure *workitem.Failure) error {
	if err := in.jobs.end(c.ID, j, func(e *state.JobMoved) { e.To, e.Failure = state.JobFailed, failure }); err != nil {
		return err
	}
	what := j.Name
	if what == "" {
		what = j.Kind
	}
	err := in.note(c.ID, taskOf(c, j), state.NoteIncident, fmt.Sprintf("job %s (%s) was given up: %s", j.ID, what, failure))
	if err != nil {
		return err
	}
	if err := in.ofJob(c, j, failure); err != nil {
		return err
	}
	if j.Kind == state.JobStart { // otherwise the case would never begin
		in.agenda.push(in.cases.endCase(c.ID, state.CaseFailed, failure, false))
	}
	return in.agenda.run(0)
}
