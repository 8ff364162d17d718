package kernel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Start opens a root case in an empty tree. The definition decodes the input first, so no case can have an input that
// its tasks cannot read. The given case has its id and its options. It begins at the due time, at once if that is not
// in the future; a queued case begins when those before it have ended. Until then none of its tasks is enabled. The
// steps are those of a run that it restarts; the first item with a worker takes them over.
func (m *Machine) Start(
	c *state.Case, d *workflow.Definition, input json.RawMessage, due time.Time, steps []*workitem.Step,
) error {
	c.Root, c.Number = c.ID, 1
	m.recorded.copied = steps
	begin, err := m.cases.create(c, d, input)
	if err != nil {
		return err
	}
	switch {
	case m.keys.mustWait:
		begin = append(begin, m.cases.waitTurn(c.ID))
	case due.After(m.now):
		begin = append(begin, m.cases.startLater(c.ID, due))
	default:
		begin = append(begin, m.cases.firstTasks(c.ID))
	}
	m.agenda.push(begin...)
	return m.agenda.run(0)
}

// OpenHandlerCall opens a job that calls a completion handler of a root case: in a worker if the handler is a function
// of the workflow, otherwise in a transaction. The failure is that of an attempt that was already made, nil if there
// was none; after one, the job waits.
func (m *Machine) OpenHandlerCall(t workflow.HandlerCall, failure *workitem.Failure, wait time.Duration) error {
	c := m.tree.Case(m.tree.Root)
	d, err := m.definitions.of(c)
	if err != nil {
		return err
	}
	j := &state.Job{Kind: state.JobHandler, Name: t.Handler, Input: t.Value, Due: m.now.Add(wait), Failure: failure,
		Priority: c.Priority, Detached: true}
	if failure != nil {
		j.Attempt = 1
	}
	if h := d.Handlers[t.Handler]; h != nil && h.Run == nil && d.Calls[t.Handler] != nil {
		j.Kind, j.Queue = state.JobCall, d.Calls[t.Handler].Queue
	}
	return m.jobs.open(c.ID, j)
}

// Remove removes a root case that has ended, with everything in it. A detached job needs the input and the definition
// of the case, so it has to end first. The error wraps [ErrUnfinished] if the case has not ended, or has such a job. An
// incident is removed with the case.
func (m *Machine) Remove() error {
	root := m.tree.Case(m.tree.Root)
	if !root.State.Final() {
		return fmt.Errorf("case %s cannot be removed: it %w; it is %s", root.ID, ErrUnfinished, root.State)
	}
	var left *state.Job
	m.tree.Each(func(c *state.Case) {
		for j := range c.Jobs.All() {
			if !isIncident(j) { // the actor decides to give up the incident too
				left = j
			}
		}
	})
	if left != nil {
		return fmt.Errorf("case %s cannot be removed: its job %s (%s %s) %w; it is %s",
			root.ID, left.ID, left.Kind, left.Name, ErrUnfinished, left.State)
	}
	var open []*state.Job
	m.tree.Each(func(c *state.Case) { open = append(open, c.Jobs.Slice()...) })
	for _, j := range open {
		if err := m.jobs.cancel(j.Case, []*state.Job{j}); err != nil {
			return err
		}
	}
	return m.emit(&state.CaseRemoved{Case: root.ID})
}

// RequireKey sets how the next Start handles the business key of its case.
func (m *Machine) RequireKey(w workflow.KeyRequirements) { m.keys.required = w }

// Turn begins a root case that has waited for those before it.
func (m *Machine) Turn() error {
	c := m.tree.Case(m.tree.Root)
	return m.jobs.move(c.ID, c.Turn(), func(e *state.JobMoved) { e.To, e.Due = state.JobPending, m.now })
}
