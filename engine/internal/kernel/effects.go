package kernel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// effects is what the scope of a callback can do. Every method takes control and gives it back, so it fails after the
// callback was abandoned: it must not even read the tree then, which another command may be changing. A method that
// opens something does so at once, and returns it. A method that acts on an item only records the request, which is
// executed after all hooks of the current change.
type effects struct {
	*record
	host        Host
	agenda      *agenda
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	items       *items
	cases       *cases
}

// A callback works on the tree of the command that called it, and so does the kernel, but never both at once. [Control]
// says which one runs:
//
//	kernel ──Give──▶ callback runs ──Take──▶ an effect: the kernel's code ──Give──▶ callback runs ──Take──▶ kernel
//	                       │ overruns its time
//	                       └──▶ abandoned: control is revoked; Take returns an error from now on, to that callback alone

// Actor implements activities.Effects.
func (e *effects) Actor() string { return e.by }

// Cause implements activities.Effects.
func (e *effects) Cause() activities.Cause { return e.callbacks.cause }

// DB implements activities.Effects.
func (e *effects) DB() domain.DB {
	if e.host.Control().Take() != nil {
		return nil
	}
	defer e.host.Control().Give()
	return e.host.DB()
}

// Items implements activities.Effects.
func (e *effects) Items(id workitem.CaseID, task string) []*workitem.Item {
	if e.host.Control().Take() != nil {
		return nil
	}
	defer e.host.Control().Give()
	c := e.tree.Case(id)
	t, ok := c.Net.TaskByName(task)
	if !ok {
		return nil
	}
	var items []*workitem.Item
	for it := range c.Items.All() {
		if it.Task == task && it.Generation == c.Tasks[t].Generation {
			items = append(items, it)
		}
	}
	return items
}

// OpenItem implements activities.Effects.
func (e *effects) OpenItem(_ context.Context, at activities.Place, n activities.NewItem) (*workitem.Item, error) {
	if err := e.host.Control().Take(); err != nil {
		return nil, err
	}
	defer e.host.Control().Give()
	c := e.tree.Case(at.Case)
	t, ok := c.Net.TaskByName(at.Task)
	if !ok || c.Net.Task(t).Kind != net.Atomic {
		return nil, noItems(c, at.Task)
	}
	return e.items.open(at.Case, t, at.Generation, n)
}

// OpenCase implements activities.Effects. The child runs as far as it can before this returns.
func (e *effects) OpenCase(_ context.Context, at activities.Place, n activities.NewCase) (workitem.CaseID, error) {
	if err := e.host.Control().Take(); err != nil {
		return workitem.CaseID{}, err
	}
	defer e.host.Control().Give()
	c := e.tree.Case(at.Case)
	t, ok := c.Net.TaskByName(at.Task)
	if !ok || c.Net.Task(t).Kind != net.Composite {
		return workitem.CaseID{}, fmt.Errorf("child cases of task %q of workflow %s, which is no composite task: %w",
			at.Task, c.Workflow, ErrNotFound)
	}
	// What is on the agenda already belongs to the command that called the callback, and waits until the callback
	// returns.
	base := e.agenda.height()
	id, begin, err := e.cases.openChild(at.Case, t, at.Generation, n)
	if err != nil {
		return id, err
	}
	e.agenda.push(begin...)
	return id, e.agenda.run(base)
}

// OpenJob implements activities.Effects.
func (e *effects) OpenJob(at activities.Place, n activities.NewJob) (workitem.JobID, error) {
	if err := e.host.Control().Take(); err != nil {
		return workitem.JobID{}, err
	}
	defer e.host.Control().Give()
	return e.openCall(at, n)
}

// Ask implements activities.Effects.
func (e *effects) Ask(it *workitem.Item, a workitem.Action, payload json.RawMessage) error {
	if err := e.host.Control().Take(); err != nil {
		return err
	}
	defer e.host.Control().Give()
	// The caller may be a hook with other hooks of the same change behind it, which would see the consequences before
	// the change.
	e.agenda.request(e.items.requestedAct(it.Case, it.ID, move{do: a, payload: payload}))
	return nil
}

// End implements activities.Effects.
func (e *effects) End(it *workitem.Item, a workitem.Action, reason *workitem.Failure) error {
	if err := e.host.Control().Take(); err != nil {
		return err
	}
	defer e.host.Control().Give()
	end, err := e.items.endLate(it, a, reason, allCallbacks)
	if err != nil {
		return err
	}
	e.agenda.request(end)
	return nil
}

// openCall schedules a named function. It belongs to the item, activation or case that asks; one that has ended leaves
// it to the case. The job of a case that has ended, and one that is detached, is owned by nothing and ends by itself:
//
//	asked by              while it is active    after its end, in a hook of the teardown
//	an item               the item              the activation
//	an activation         the activation        the case
//	the case              the case              nothing
func (e *effects) openCall(at activities.Place, n activities.NewJob) (workitem.JobID, error) {
	c := e.tree.Case(at.Case)
	d, err := e.definitions.of(c)
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
		Due: e.now.Add(n.After), Detached: n.Detached || c.State.Final()}
	if t, ok := c.Net.TaskByName(at.Task); ok && !j.Detached && mustBeActive(c, t, at.Generation) == nil {
		j.Task, j.Generation = at.Task, at.Generation
		if it := c.Item(at.Item); it != nil && it.State.Live() {
			j.Item = it.ID
		}
	}
	err = e.jobs.open(c.ID, j)
	return j.ID, err
}
