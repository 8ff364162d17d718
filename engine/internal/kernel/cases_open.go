package kernel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// open creates a case and returns its beginning: its own onInitialized first, then its first tasks.
func (cs *cases) open(c *state.Case, d *workflow.Definition, input json.RawMessage) ([]step, error) {
	begin, err := cs.create(c, d, input)
	return append(begin, cs.firstTasks(c.ID)), err
}

// create creates a case and returns its own onInitialized.
func (cs *cases) create(c *state.Case, d *workflow.Definition, input json.RawMessage) ([]step, error) {
	if d.Accept != nil {
		accepted, err := cs.callbacks.accept(d.AcceptIsPlain, func() (json.RawMessage, error) { return d.Accept(input) })
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", versioned(d.Name, d.Version), err)
		}
		input = accepted
	}
	// The case keeps the fingerprint of its definition for its life: a program with another version does not change
	// what it does.
	c.Workflow, c.Version, c.Fingerprint, c.Net = d.Name, d.Version, d.Fingerprint, d.Net
	c.State, c.Input, c.Created = state.CaseStarted, input, cs.now
	if err := cs.identify(c, d); err != nil {
		return nil, fmt.Errorf("start %s: %w", versioned(d.Name, d.Version), err)
	}
	if err := cs.emit(&state.CaseOpened{Case: c}); err != nil {
		return nil, err
	}
	cs.opened = c
	s, err := cs.suspensions.Suspension(d.Name)
	if err != nil {
		return nil, err
	}
	if s != nil {
		if err := cs.emit(&state.CaseSuspended{Case: c.ID, Suspension: *s}); err != nil {
			return nil, err
		}
	}
	return []step{cs.callbacks.caseHook(c.ID, "onInitialized", d.Hooks.OnInitialized), cs.agenda.release}, nil
}

// identify sets the business key and the labels of a new case. What the start gave takes precedence over what the
// definition computes from the input. A unique key that another case holds is an error.
func (cs *cases) identify(c *state.Case, d *workflow.Definition) error {
	made, err := cs.callbacks.identity(c, d)
	if err != nil {
		return fmt.Errorf("business key and labels: %w", err)
	}
	id := workflow.Identity{Key: c.Key, Labels: c.Labels}.Over(made)
	if err := id.Check(); err != nil {
		return err
	}
	c.Key, c.Labels = id.Key, id.Labels
	if !c.Parent.IsZero() {
		return nil
	}
	return cs.keys.claim(c, d.UniqueKey, cs.now, cs.recorded.canWait())
}

// firstTasks tries the tasks behind the start condition.
// It is a step of its own, and not part of create, since a case may begin later: at a time, or after the cases
// before it with its business key. Until then no task is enabled.
func (cs *cases) firstTasks(id workitem.CaseID) step {
	return func() error {
		n := cs.tree.Case(id).Net
		var steps []step
		for _, t := range n.Consumers(n.Start()) {
			steps = append(steps, cs.activations.try(id, t))
		}
		cs.agenda.push(steps...)
		return nil
	}
}

// startLater begins a case at a later time, by a job of the case itself. So it is canceled with the case, survives a
// restart like any job, and fails the case if the first tasks cannot be enabled (see giveUp).
func (cs *cases) startLater(id workitem.CaseID, due time.Time) step {
	return func() error {
		c := cs.tree.Case(id)
		if c.State.Final() {
			return nil // onInitialized has ended the case
		}
		return cs.jobs.open(id, &state.Job{Kind: state.JobStart, Due: due, Priority: c.Priority})
	}
}

// waitTurn opens the job by which a case waits for those before it, see [Machine.Turn].
func (cs *cases) waitTurn(id workitem.CaseID) step {
	return func() error {
		c := cs.tree.Case(id)
		if c.State.Final() {
			return nil // onInitialized has ended the case
		}
		return cs.jobs.openAs(state.JobWaiting, id, &state.Job{Kind: state.JobStart, Priority: c.Priority})
	}
}

// openChild creates a child case in an activation of a composite task, and returns its beginning.
func (cs *cases) openChild(at workitem.CaseID, t net.TaskID, generation int, n activities.NewCase) (
	workitem.CaseID, []step, error,
) {
	var none workitem.CaseID
	c := cs.tree.Case(at)
	if err := mustBeActive(c, t, generation); err != nil {
		return none, nil, err
	}
	spec, err := cs.definitions.task(c, t)
	if err != nil {
		return none, nil, err
	}
	d := spec.Of[n.Workflow]
	if n.Workflow == "" && len(spec.Of) == 1 {
		for _, only := range spec.Of {
			d = only
		}
	}
	if d == nil {
		return none, nil, fmt.Errorf("task %s of workflow %s does not run workflow %q: %w",
			c.Net.TaskName(t), c.Workflow, n.Workflow, ErrUnknown)
	}
	child := &state.Case{
		ID: cs.ids.NewCaseID(cs.now), Root: c.Root, Parent: c.ID, ParentTask: c.Net.TaskName(t),
		Generation: generation, Number: c.Tasks[t].Created + 1, Priority: c.Priority,
	}
	begin, err := cs.open(child, d, n.Input)
	return child.ID, begin, err
}
