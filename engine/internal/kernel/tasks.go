package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// try looks at a task's join: a satisfied one enables the task, and an enabled task whose join is satisfied no longer
// is withdrawn. It is idempotent, so a task may be tried for several reasons in one command.
//
//	            join satisfied    not satisfied
//	not active  enable            -
//	enabled     -                 withdraw
//	started     -                 -             its tokens are consumed; it ends by itself
//
// In a case that is being shut down nothing is enabled: its tasks are withdrawn one after the other, and the token that
// a completion had put out before would enable one of them again.
//
// An or-join whose search ran out of its budget waits, with an incident: to fire wrongly would take a token that
// belongs to a later activation, which nothing can put back. A wait ends with the next change of its slice.
func (m *Machine) try(id workitem.CaseID, t net.TaskID) step {
	return func() error {
		c := m.tree.Case(id)
		task := c.Tasks[t]
		if c.State.Final() || m.ending[id] || task.State == state.TaskStarted {
			return nil
		}
		var busy net.Bits
		if c.Net.Task(t).Join == net.Or {
			busy = c.Busy()
		}
		d := c.Net.Enabled(t, c.Marking, busy)
		if err := m.orJoinIncident(c, t, d.Undecided); err != nil {
			return err
		}
		switch {
		case d.Undecided:
			return m.emit(&state.Noted{Case: id, Task: t, Code: state.NoteUndecided,
				Text: fmt.Sprintf("or-join %s waits: its search ran out of its budget", c.Net.TaskName(t))})
		case d.Enabled && task.State != state.TaskEnabled:
			return m.enable(c, t)
		case !d.Enabled && task.State == state.TaskEnabled:
			m.push(m.withdraw(id, t))
		}
		return nil
	}
}

// enable begins a new activation. No token is consumed: several tasks may be enabled by one token (a deferred choice),
// and the first one that starts takes it.
//
// The hook runs before the items are made, since it may make them itself. A routing task has none: it starts and
// completes in the same command, before its neighbors are tried, so that no two routing tasks see the same token.
func (m *Machine) enable(c *state.Case, t net.TaskID) error {
	spec, err := m.spec(c, t)
	if err != nil {
		return err
	}
	id, generation := c.ID, c.Tasks[t].Generation+1
	if err := m.mayEnable(c, t, generation); err != nil {
		return err
	}
	if err := m.emit(&state.TaskMoved{Case: id, Task: t, To: state.TaskEnabled, Generation: generation}); err != nil {
		return err
	}
	hook := m.taskHook(id, t, generation, "onEnabled", spec.Hooks.OnEnabled)
	if c.Net.Task(t).Kind == net.Routing {
		m.push(hook, m.releaseRequested, m.ensureStarted(id, t, generation), m.complete(id, t, generation))
		return nil
	}
	m.push(hook, m.populate(id, t, generation, spec), m.startTimers(id, t, generation, spec), m.releaseRequested)
	return nil
}

// populate makes the work items, or the child cases, that the definition asks for. The hook before it may have ended
// the activation (it asked to cancel an item that it made), hence the check.
func (m *Machine) populate(id workitem.CaseID, t net.TaskID, generation int, spec *workflow.Task) step {
	return func() error {
		c := m.tree.Case(id)
		if m.mustBeActive(c, t, generation) != nil {
			return nil
		}
		if c.Net.Task(t).Kind == net.Composite {
			return m.populateCases(c, t, generation, spec)
		}
		inputs, err := m.inputs(c, t, generation, spec)
		if err != nil {
			return m.failUnread(id, t, generation, err)
		}
		for _, input := range inputs {
			if _, err := m.openItem(id, t, generation, activities.NewItem{Input: input}); err != nil {
				return err
			}
		}
		return nil
	}
}

// inputs are the payloads of the items that the definition asks for. What is read without code of the user's is read at
// once: a callback takes two changes of goroutines.
func (m *Machine) inputs(c *state.Case, t net.TaskID, generation int, spec *workflow.Task) (inputs []json.RawMessage, err error) {
	switch {
	case spec.PlainInput != nil:
		input, err := spec.PlainInput(Info(c))
		return []json.RawMessage{input}, located(c, t, "input", err)
	case spec.Inputs != nil:
		a := m.activation(c, t, generation)
		err = m.call(c, t, "input", func(ctx context.Context) (err error) {
			inputs, err = spec.Inputs(ctx, a)
			return err
		})
		return inputs, err
	}
	return []json.RawMessage{nil}, nil
}

// populateCases creates all the child cases before the first of them runs, so that the policy of a child that ends at
// once sees its siblings.
func (m *Machine) populateCases(c *state.Case, t net.TaskID, generation int, spec *workflow.Task) error {
	cases := []activities.NewCase{{}}
	if spec.Cases != nil {
		a := m.activation(c, t, generation)
		err := m.call(c, t, "cases", func(ctx context.Context) (err error) {
			cases, err = spec.Cases(ctx, a)
			return err
		})
		if err != nil {
			return m.failUnread(c.ID, t, generation, err)
		}
	}
	var steps []step
	for _, n := range cases {
		id, begin, err := m.openChild(c.ID, t, generation, n)
		if err != nil {
			return err
		}
		m.extraSteps += childSteps * m.tree.Case(id).Net.NumTasks()
		steps = append(steps, begin...)
	}
	m.push(steps...)
	return nil
}

// ensureStarted starts an activation that has not started yet: first the case and everything above it, then the task.
// The first item of a leaf so starts the whole path to the root, from above:
//
//	root case begun ── composite task k started ── child case begun ── task c started ── item c.1.1 started
func (m *Machine) ensureStarted(id workitem.CaseID, t net.TaskID, generation int) step {
	return func() error {
		c := m.tree.Case(id)
		if c.Tasks[t].State != state.TaskEnabled || c.Tasks[t].Generation != generation {
			return nil
		}
		m.push(m.begin(id), m.start(id, t, generation))
		return nil
	}
}

// start consumes the tokens of an enabled task, and withdraws the tasks that wanted the same ones.
//
//	      ┌─▶ a (enabled)      a starts       ┌─▶ a (started)
//	(p:1) ┤                   ─────────▶ (p:0)┤
//	      └─▶ b (enabled)                     └─▶ b (disabled, its items canceled)
//
// A task that still has enough tokens is not withdrawn: with two tokens in p, b stays enabled, in the same activation.
// The withdrawals come before onStarted, so that the hook sees a case without competitors. The policy is asked
// too, with an outcome that has no item: one that counts starts may decide here.
func (m *Machine) start(id workitem.CaseID, t net.TaskID, generation int) step {
	return func() error {
		c := m.tree.Case(id)
		task := c.Tasks[t]
		if c.State.Final() || task.State != state.TaskEnabled || task.Generation != generation {
			return nil
		}
		spec, err := m.spec(c, t)
		if err != nil {
			return err
		}
		consumed := c.Net.Consumes(nil, t, c.Marking)
		err = m.emit(&state.TaskMoved{
			Case: id, Task: t, To: state.TaskStarted, Generation: generation, Consumed: consumed,
		})
		if err != nil {
			return err
		}
		m.touchBusy(c, t)
		steps := m.withdrawals(c, consumed)
		steps = append(steps, m.taskHook(id, t, generation, "onStarted", spec.Hooks.OnStarted),
			m.judge(id, t, generation, workitem.Outcome{}, nil))
		m.push(steps...)
		return nil
	}
}

// withdrawals lists steps that withdraw the enabled tasks next to the conditions, if their joins are satisfied no
// longer.
func (m *Machine) withdrawals(c *state.Case, conditions []net.ConditionID) []step {
	var steps []step
	seen := net.NewBits(len(c.Tasks))
	for _, p := range conditions {
		m.touch(c, p)
		for _, u := range c.Net.Consumers(p) {
			if !seen.Has(int(u)) {
				seen.Add(int(u))
				steps = append(steps, m.withdrawUnsatisfied(c.ID, u))
			}
		}
	}
	return steps
}

// withdrawUnsatisfied is the half of try that only withdraws.
func (m *Machine) withdrawUnsatisfied(id workitem.CaseID, t net.TaskID) step {
	return func() error {
		if m.tree.Case(id).Tasks[t].State != state.TaskEnabled {
			return nil
		}
		return m.try(id, t)()
	}
}

// complete ends an activation well: children canceled, onCompleted, region, split, enablings, end check.
//
// The region is emptied before the tokens are put out: a task may name one of its own outputs in its region, and the
// fresh token must stay. onCompleted comes before both, so that an error in it leaves the marking as it was.
func (m *Machine) complete(id workitem.CaseID, t net.TaskID, generation int) step {
	return m.leave(id, t, generation, state.TaskCompleted, func(c *state.Case, spec *workflow.Task) []step {
		return []step{
			m.taskHook(id, t, generation, "onCompleted", spec.Hooks.OnCompleted), m.releaseRequested,
			m.region(id, t), m.split(id, t, generation, spec),
		}
	})
}

// fail ends an activation badly, and its case with it: nothing is put out, as a task that failed has decided for none
// of its flows. Whether the case above bears it is up to the policy there (see closeCase).
func (m *Machine) fail(id workitem.CaseID, t net.TaskID, generation int, failure *workitem.Failure) step {
	return m.leave(id, t, generation, state.TaskFailed, func(c *state.Case, spec *workflow.Task) []step {
		return []step{
			m.taskHook(id, t, generation, "onFailed", spec.Hooks.OnFailed), m.releaseRequested,
			m.endCase(id, state.CaseFailed, failure, false),
		}
	})
}

// leave moves a started task to a final state and cancels what it still owns. Every way out checks state and
// generation, so an activation ends once, and a late verdict is ignored.
func (m *Machine) leave(
	id workitem.CaseID, t net.TaskID, generation int, to state.TaskState, rest func(*state.Case, *workflow.Task) []step,
) step {
	return func() error {
		c := m.tree.Case(id)
		task := c.Tasks[t]
		if c.State.Final() || task.State != state.TaskStarted || task.Generation != generation {
			return nil
		}
		spec, err := m.spec(c, t)
		if err != nil {
			return err
		}
		if err := m.emit(&state.TaskMoved{Case: id, Task: t, To: to, Generation: generation}); err != nil {
			return err
		}
		m.touchBusy(c, t)
		m.push(rest(c, spec)...)
		var reason *workitem.Failure
		if to == state.TaskFailed {
			reason = lost
		}
		m.push(m.cancelOwned(id, t, generation, reason))
		return nil
	}
}

// withdraw takes an enabling back.
func (m *Machine) withdraw(id workitem.CaseID, t net.TaskID) step {
	return m.drop(id, t, state.TaskEnabled, state.TaskDisabled, nil)
}

// cancelTask cancels a started task.
func (m *Machine) cancelTask(id workitem.CaseID, t net.TaskID) step {
	return m.drop(id, t, state.TaskStarted, state.TaskCanceled, nil)
}

// drop ends an activation from outside, with all that it owns; no policy is asked. The reason is [lost] if the case
// fails, and nil otherwise.
func (m *Machine) drop(id workitem.CaseID, t net.TaskID, from, to state.TaskState, reason *workitem.Failure) step {
	return func() error {
		c := m.tree.Case(id)
		task := c.Tasks[t]
		if task.State != from {
			return nil
		}
		spec, err := m.spec(c, t)
		if err != nil {
			return err
		}
		moved := &state.TaskMoved{Case: id, Task: t, To: to, Generation: task.Generation}
		moved.Lost = reason != nil && from == state.TaskStarted
		if err := m.emit(moved); err != nil {
			return err
		}
		hook := m.taskHook(id, t, task.Generation, "onCanceled", spec.Hooks.OnCanceled)
		if to == state.TaskDisabled {
			hook = m.taskHook(id, t, task.Generation, "onDisabled", spec.Hooks.OnDisabled)
		}
		if from == state.TaskStarted {
			m.touchBusy(c, t)
		}
		m.push(m.cancelOwned(id, t, task.Generation, reason), hook, m.releaseRequested)
		return nil
	}
}

// cancelOwned cancels the live items, child cases and jobs of an activation. The jobs that the activation owns itself
// (its timers) go at once; those of its items and child cases go with these. Steps that are pushed here run before what
// the caller has pushed, so an activation owns nothing any more when its onCompleted, onFailed or onCanceled runs.
func (m *Machine) cancelOwned(id workitem.CaseID, t net.TaskID, generation int, reason *workitem.Failure) step {
	return func() error {
		c := m.tree.Case(id)
		name := c.Net.TaskName(t)
		var steps []step
		for it := range c.Items.All() {
			if it.Task == name && it.Generation == generation && it.State.Live() {
				steps = append(steps, m.tearDown(id, it.ID, reason))
			}
		}
		if c.Net.Task(t).Kind == net.Composite {
			children := slices.Collect(m.tree.Children(id, name, generation))
			for _, child := range slices.Backward(children) {
				steps = append(steps, m.endCase(child.ID, state.CaseCanceled, reason, true))
			}
		}
		m.push(steps...)
		var jobs []*state.Job
		for j := range c.Jobs.All() {
			if (j.Item.IsZero() || j.Kind == state.JobIncident) && j.Owned(name, generation) {
				jobs = append(jobs, j)
			}
		}
		return m.cancelJobs(id, jobs)
	}
}
