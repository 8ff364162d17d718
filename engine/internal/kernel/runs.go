package kernel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Start opens a root case in an empty tree. The definition decodes the input first, so that a case with an input that its
// tasks cannot read is never there. The case given has its id, and what was asked of it. It begins at the due
// time, at once if that is now or before, and if it is queued when those before it have ended: until then it is there, and none of its
// tasks is enabled. The steps are those
// of a run that it restarts; the first item that a worker does takes them over.
func (m *Machine) Start(
	c *state.Case, d *workflow.Definition, input json.RawMessage, due time.Time, steps []*workitem.Step,
) error {
	c.Root, c.Number = c.ID, 1
	m.copied = steps
	begin, err := m.createCase(c, d, input)
	if err != nil {
		return err
	}
	switch {
	case m.behind:
		begin = append(begin, m.waitTurn(c.ID))
	case due.After(m.now):
		begin = append(begin, m.startLater(c.ID, due))
	default:
		begin = append(begin, m.firstTasks(c.ID))
	}
	m.then(begin...)
	return m.run(0)
}

// takeOver gives the run of an item the steps of the run that its case restarts. They are for the first item with a run
// and for it alone: a later item is work of its own, which the steps say nothing of.
//
//	old run     charge done    pack done    ship failed
//	new run     charge done    pack done    ship is called
func (m *Machine) takeOver(id workitem.CaseID, it *workitem.Item) error {
	steps := m.copied
	m.copied = nil
	for _, j := range m.tree.Case(id).Jobs.Of(it.ID) {
		if j.Kind == state.JobRun {
			return m.copySteps(id, j, steps)
		}
	}
	return nil
}

// Tell calls a handler of the end of a root case by a job: in a worker if it is a function of the workflow,
// otherwise in a transaction. The failure is that of an attempt that was made already, nil if there was none; the job
// then waits.
func (m *Machine) Tell(t workflow.HandlerCall, failure *workitem.Failure, wait time.Duration) error {
	c := m.tree.Case(m.tree.Root)
	d, err := m.definition(c)
	if err != nil {
		return err
	}
	j := &state.Job{Kind: state.JobTell, Name: t.Handler, Input: t.Value, Due: m.now.Add(wait), Failure: failure,
		Priority: c.Priority, Detached: true}
	if failure != nil {
		j.Attempt = 1
	}
	if h := d.Handlers[t.Handler]; h != nil && h.Run == nil && d.Calls[t.Handler] != nil {
		j.Kind, j.Queue = state.JobCall, d.Calls[t.Handler].Queue
	}
	return m.addJob(c.ID, j)
}

// Remove forgets a root case that has ended, with all that it had. A job that it left behind needs the case for its input
// and its definition, so it comes first. The error wraps [ErrUnfinished] if it has not ended,
// or a job that it left behind is still to be done. An incident goes with it.
func (m *Machine) Remove() error {
	root := m.tree.Case(m.tree.Root)
	if !root.State.Final() {
		return fmt.Errorf("case %s cannot be removed: it %w; it is %s", root.ID, ErrUnfinished, root.State)
	}
	var left *state.Job
	m.tree.Each(func(c *state.Case) {
		for j := range c.Jobs.All() {
			if !isIncident(j) { // who removes the case decides that, too
				left = j
			}
		}
	})
	if left != nil {
		return fmt.Errorf("case %s cannot be removed: it %w; job %s (%s %s) is %s",
			root.ID, ErrUnfinished, left.ID, left.Kind, left.Name, left.State)
	}
	var open []*state.Job
	m.tree.Each(func(c *state.Case) { open = append(open, c.Jobs.Slice()...) })
	for _, j := range open {
		if err := m.cancelJobs(j.Case, []*state.Job{j}); err != nil {
			return err
		}
	}
	return m.emit(&state.CaseRemoved{Case: root.ID})
}
