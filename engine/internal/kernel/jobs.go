package kernel

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// openJob creates a job of an item, which ends with it.
func (m *Machine) openJob(id workitem.CaseID, j *state.Job, it *workitem.Item) error {
	j.Task, j.Generation, j.Item = it.Task, it.Generation, it.ID
	return m.addJob(id, j)
}

// addJob creates a job of an activation or a case. Ids increase in the order of creation, also within one microsecond.
// So jobs that are due at the same time act in that order, on every store and after a restart.
func (m *Machine) addJob(id workitem.CaseID, j *state.Job) error {
	return m.openJobAs(state.JobPending, id, j)
}

// openJobAs creates a job in a given state.
func (m *Machine) openJobAs(s state.JobState, id workitem.CaseID, j *state.Job) error {
	c := m.tree.Case(id)
	j.ID, j.Case, j.Root, j.State, j.Created = m.ids.NewJobID(m.now), id, c.Root, s, m.now
	return m.emit(&state.JobOpened{Job: j})
}

// taskOf returns the task that owns a job, directly or by an item; -1 if the case owns it.
func taskOf(c *state.Case, j *state.Job) net.TaskID {
	if t, ok := c.Net.TaskByName(j.Task); ok {
		return t
	}
	return -1
}

// moveJob changes a job; fields that are not set keep their values.
// The change has all fields that can change, and not only those that do, so applying it needs no rules.
func (m *Machine) moveJob(id workitem.CaseID, j *state.Job, set func(*state.JobMoved)) error {
	e := &state.JobMoved{
		Case: id, Job: j.ID, To: j.State, Due: j.Due, Attempt: j.Attempt, Crashes: j.Crashes, Fence: j.Fence,
		Owner: j.Owner, Lease: j.Lease, Failure: j.Failure, At: m.now,
	}
	set(e)
	return m.emit(e)
}

// endJob moves a job to a final state, and ends the waits of its steps. Otherwise an event could be taken by a step
// that no function waits for any more, and a child case would continue although its output is not needed.
func (m *Machine) endJob(id workitem.CaseID, j *state.Job, set func(*state.JobMoved)) error {
	if err := m.moveJob(id, j, set); err != nil {
		return err
	}
	return m.endSteps(id, j.ID)
}

// cancelJobs cancels live jobs of a case.
// The list must be a copy of that of the case, from which jobs that end are removed.
func (m *Machine) cancelJobs(id workitem.CaseID, jobs []*state.Job) error {
	for _, j := range jobs {
		if err := m.endJob(id, j, func(e *state.JobMoved) { e.To = state.JobCanceled }); err != nil {
			return err
		}
	}
	return nil
}

// openCall schedules a named function. It belongs to the item, activation or case that asks; one that has ended leaves
// it to the case. The job of a case that has ended, and one that is detached, is owned by nothing and ends by itself:
//
//	asked by              while it is active    after its end, in a hook of the teardown
//	an item               the item              the activation
//	an activation         the activation        the case
//	the case              the case              nothing
func (m *Machine) openCall(at activities.Place, n activities.NewJob) (workitem.JobID, error) {
	c := m.tree.Case(at.Case)
	d, err := m.definition(c)
	if err != nil {
		return workitem.JobID{}, err
	}
	call := d.Calls[n.Name]
	if call == nil {
		return workitem.JobID{}, fmt.Errorf("function %q of workflow %s: %w", n.Name, c.Workflow, ErrNotFound)
	}
	if n.After < 0 {
		return workitem.JobID{}, fmt.Errorf("job %q cannot be due %s ago: give zero or more", n.Name, -n.After)
	}
	queue, err := queueOf(c, call.Queue)
	if err != nil {
		return workitem.JobID{}, err
	}
	j := &state.Job{Kind: state.JobCall, Name: n.Name, Queue: queue, Priority: c.Priority, Input: n.Input,
		Due: m.now.Add(n.After), Detached: n.Detached || c.State.Final()}
	if t, ok := c.Net.TaskByName(at.Task); ok && !j.Detached && mustBeActive(c, t, at.Generation) == nil {
		j.Task, j.Generation = at.Task, at.Generation
		if it := c.Item(at.Item); it != nil && it.State.Live() {
			j.Item = it.ID
		}
	}
	err = m.addJob(c.ID, j)
	return j.ID, err
}

// queueOf returns the queue for jobs of a case: that of its start, or that of the definition.
func queueOf(c *state.Case, defined string) (string, error) {
	if !bytes.Contains(c.Options, []byte(`"queue":`)) { // skips decoding for most cases
		return defined, nil
	}
	o, err := workflow.OptionsOf(Info(c))
	return cmp.Or(o.Queue, defined), err
}
