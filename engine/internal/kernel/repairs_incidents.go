package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// RetryIncident repeats a job that was given up: a timer, a scheduled function, a handler. A new job, due now, replaces
// the incident. If the incident is about a child case, that is resumed, see [Repairs.Resume]. The error wraps [ErrNotFound] if there
// is no such incident, and [workflow.ErrBadCommand] if it is about a work item, which has commands of its own.
func (rp *Repairs) RetryIncident(id workitem.JobID) error {
	c, j := rp.tree.Job(id)
	if j == nil || !isIncident(j) {
		return IncidentNotOpen(id)
	}
	about, err := state.SubjectOf(j)
	if err != nil {
		return err
	}
	if !about.Case.IsZero() {
		_, err := rp.Resume(about.Case, nil, nil)
		return err
	}
	if !about.Job.Again() {
		return fmt.Errorf("%w: incident %s (%s) is about no job that can be done again by itself: retry its work item, or move a token",
			workflow.ErrBadCommand, id, j.Name)
	}
	if err := rp.incidents.resolve(c.ID, func(i *state.Job) bool { return i.ID == id }); err != nil {
		return err
	}
	g := about.Job
	return rp.jobs.open(c.ID, &state.Job{Kind: g.Kind, Name: g.Name, Queue: g.Queue, Input: g.Input, Task: j.Task, Generation: j.Generation,
		Item: j.Item, Priority: j.Priority, Detached: j.Detached, Due: rp.now})
}

// GiveUpItem fails the task of an item that is an incident, and its case with it, as its policy would have without
// [workitem.Incident]. The error wraps [ErrNotFound] if the item is none.
func (rp *Repairs) GiveUpItem(id workitem.ID) error {
	c, it := rp.tree.Item(id)
	if it == nil {
		return fmt.Errorf("work item %s: %w", id, ErrNotFound)
	}
	for _, j := range c.Jobs.Of(id) {
		if !isIncident(j) {
			continue
		}
		t, _ := c.Net.TaskByName(it.Task)
		spec, err := rp.definitions.task(c, t)
		if err != nil {
			return err
		}
		rp.activations.giveUpItem(c, spec, it, j.Failure)
		rp.agenda.push(rp.activations.ensureStarted(c.ID, t, it.Generation), rp.activations.fail(c.ID, t, it.Generation, j.Failure))
		return rp.agenda.run(0)
	}
	return fmt.Errorf("work item %s (%s/%s) is no incident, so there is nothing to give up: %w", id, c.Workflow, it.Label(), ErrNotFound)
}

// orGiveUp names the work item that is given up instead of an incident; "" if that is about something else, as a timer.
func orGiveUp(j *state.Job) string {
	if about, err := state.SubjectOf(j); err != nil || j.Item.IsZero() || about.Job.Again() {
		return ""
	}
	return ", or give up its work item " + j.Item.String()
}

// GiveUpIncident fails the task of an incident that is about a child case, and its case with it, as its policy would have without
// [workitem.Incident]. The error wraps [ErrNotFound] if there is no such incident, and [workflow.ErrBadCommand] if it is about something else.
func (rp *Repairs) GiveUpIncident(id workitem.JobID) error {
	c, j := rp.tree.Job(id)
	if j == nil || !isIncident(j) {
		return IncidentNotOpen(id)
	}
	if ofCase(j).IsZero() {
		return fmt.Errorf("%w: incident %s (%s) is about no child case: retry it%s", workflow.ErrBadCommand, id, j.Name, orGiveUp(j))
	}
	t, _ := c.Net.TaskByName(j.Task)
	rp.agenda.push(rp.activations.ensureStarted(c.ID, t, j.Generation), rp.activations.fail(c.ID, t, j.Generation, j.Failure))
	return rp.agenda.run(0)
}
