package kernel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workitem"
)

// effects is the machine as a callback sees it: what its scope can do, by the methods below. Every method takes control and gives it back, so it fails after the
// callback was abandoned: it must not even read the tree then, which another command may be changing. A method that
// opens something does so at once, and returns it. A method that acts on an item only records the request, which is
// executed after all hooks of the current change.
type effects Machine

// A callback works on the tree of the command that called it, and so does the kernel, but never both at once. [Control]
// says which one runs:
//
//	kernel ──Give──▶ callback runs ──Take──▶ an effect: the kernel's code ──Give──▶ callback runs ──Take──▶ kernel
//	                       │ overruns its time
//	                       └──▶ abandoned: control is revoked; Take returns an error from now on, to that callback alone

// m is the machine itself; the type only narrows what callbacks reach.
func (e *effects) m() *Machine { return (*Machine)(e) }

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
	return e.m().items.open(at.Case, t, at.Generation, n)
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
	m, base := e.m(), e.agenda.height()
	id, begin, err := m.openChild(at.Case, t, at.Generation, n)
	if err != nil {
		return id, err
	}
	m.agenda.push(begin...)
	return id, m.agenda.run(base)
}

// OpenJob implements activities.Effects.
func (e *effects) OpenJob(at activities.Place, n activities.NewJob) (workitem.JobID, error) {
	if err := e.host.Control().Take(); err != nil {
		return workitem.JobID{}, err
	}
	defer e.host.Control().Give()
	return e.m().openCall(at, n)
}

// Ask implements activities.Effects.
func (e *effects) Ask(it *workitem.Item, a workitem.Action, payload json.RawMessage) error {
	if err := e.host.Control().Take(); err != nil {
		return err
	}
	defer e.host.Control().Give()
	// The caller may be a hook with other hooks of the same change behind it, which would see the consequences before
	// the change.
	e.agenda.request(e.m().items.requestedAct(it.Case, it.ID, move{do: a, payload: payload}))
	return nil
}

// End implements activities.Effects.
func (e *effects) End(it *workitem.Item, a workitem.Action, reason *workitem.Failure) error {
	if err := e.host.Control().Take(); err != nil {
		return err
	}
	defer e.host.Control().Give()
	end, err := e.m().items.endLate(it, a, reason, allCallbacks)
	if err != nil {
		return err
	}
	e.agenda.request(end)
	return nil
}
