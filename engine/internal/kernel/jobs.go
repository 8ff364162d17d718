package kernel

import (
	"bytes"
	"cmp"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// jobs opens, moves and ends the jobs of a tree, with the waits of their functions: the steps that wait are owned by a job, and end
// with it. It decides nothing: who may have a job, and what its result means, is for its callers.
type jobs struct {
	*record
	agenda *agenda
	cases  caseEnder // the child cases that steps have started
}

// caseEnder ends cases. The step that it returns does nothing if the case has ended already.
type caseEnder interface {
	endCase(id workitem.CaseID, to state.CaseState, failure *workitem.Failure, teardown bool) step
}

// openOf creates a job of an item, which ends with it.
func (js *jobs) openOf(id workitem.CaseID, j *state.Job, it *workitem.Item) error {
	j.Task, j.Generation, j.Item = it.Task, it.Generation, it.ID
	return js.open(id, j)
}

// open creates a job of an activation or a case. Ids increase in the order of creation, also within one microsecond.
// So jobs that are due at the same time act in that order, on every store and after a restart.
func (js *jobs) open(id workitem.CaseID, j *state.Job) error {
	return js.openAs(state.JobPending, id, j)
}

// openAs creates a job in a given state.
func (js *jobs) openAs(s state.JobState, id workitem.CaseID, j *state.Job) error {
	c := js.tree.Case(id)
	j.ID, j.Case, j.Root, j.State, j.Created = js.ids.NewJobID(js.now), id, c.Root, s, js.now
	return js.emit(&state.JobOpened{Job: j})
}

// taskOf returns the task that owns a job, directly or by an item; -1 if the case owns it.
func taskOf(c *state.Case, j *state.Job) net.TaskID {
	if t, ok := c.Net.TaskByName(j.Task); ok {
		return t
	}
	return -1
}

// move changes a job; fields that are not set keep their values.
// The change has all fields that can change, and not only those that do, so applying it needs no rules.
func (js *jobs) move(id workitem.CaseID, j *state.Job, set func(*state.JobMoved)) error {
	e := &state.JobMoved{
		Case: id, Job: j.ID, To: j.State, Due: j.Due, Attempt: j.Attempt, Crashes: j.Crashes, Fence: j.Fence,
		Owner: j.Owner, Lease: j.Lease, Failure: j.Failure, At: js.now,
	}
	set(e)
	return js.emit(e)
}

// end moves a job to a final state, and ends the waits of its steps. Otherwise an event could be taken by a step
// that no function waits for any more, and a child case would continue although its output is not needed.
func (js *jobs) end(id workitem.CaseID, j *state.Job, set func(*state.JobMoved)) error {
	if err := js.move(id, j, set); err != nil {
		return err
	}
	return js.endSteps(id, j.ID)
}

// cancel cancels live jobs of a case.
// The list must be a copy of that of the case, from which jobs that end are removed.
func (js *jobs) cancel(id workitem.CaseID, jobs []*state.Job) error {
	for _, j := range jobs {
		if err := js.end(id, j, func(e *state.JobMoved) { e.To = state.JobCanceled }); err != nil {
			return err
		}
	}
	return nil
}

// queueOf returns the queue for jobs of a case: that of its start, or that of the definition.
func queueOf(c *state.Case, defined string) (string, error) {
	if !bytes.Contains(c.Options, []byte(`"queue":`)) { // skips decoding for most cases
		return defined, nil
	}
	o, err := workflow.OptionsOf(Info(c))
	return cmp.Or(o.Queue, defined), err
}
