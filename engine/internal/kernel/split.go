package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// region executes the cancellation region of a task: it cancels the member tasks and empties the member conditions. An
// enabled member also loses the tokens in its private inputs, which no other task can use, so that it is not enabled
// again by them.
//
//	(p) ──▶ b ◀── (q) ──▶ c      a cancels b, which is enabled by p and q
//
// p is an input of b alone and is emptied. q is also an input of c: it keeps its token, and c stays enabled. To empty q
// too, the region must name it. Members that are neither started nor enabled keep the tokens in their inputs.
//
// Tasks come before conditions, both in the order of the definition. All members are recorded for the sweep: a canceled
// member whose join is still satisfied is enabled again, as a new activation.
func (m *Machine) region(id workitem.CaseID, t net.TaskID) step {
	return func() error {
		c := m.tree.Case(id)
		tasks, conditions := c.Net.Region(t)
		if len(tasks)+len(conditions) == 0 {
			return nil
		}
		emptied := slices.Clone(conditions)
		var steps []step
		for _, u := range tasks {
			switch c.Tasks[u].State {
			case state.TaskStarted:
				steps = append(steps, m.cancelTask(id, u))
				m.joins.retry(c, u)
			case state.TaskEnabled:
				steps = append(steps, m.drop(id, u, state.TaskEnabled, state.TaskCanceled, nil))
				emptied = append(emptied, c.Net.PrivateInputs(u)...)
				m.joins.retry(c, u)
			}
		}
		steps = append(steps, func() error { return m.empty(id, t, emptied) })
		m.agenda.push(steps...)
		return nil
	}
}

// empty removes all tokens from conditions, and withdraws the tasks whose joins are no longer satisfied. It runs as a
// separate step after those that cancel the members, so the hooks of a canceled member see the marking before the
// removal.
func (m *Machine) empty(id workitem.CaseID, t net.TaskID, conditions []net.ConditionID) error {
	var emptied []net.ConditionID
	for _, p := range conditions {
		tokens := m.tree.Case(id).Marking[p]
		if tokens == 0 {
			continue
		}
		if err := m.emit(&state.Removed{Case: id, Task: t, From: p, Tokens: tokens}); err != nil {
			return err
		}
		emptied = append(emptied, p)
	}
	m.agenda.push(m.withdrawals(m.tree.Case(id), emptied)...)
	return nil
}

// split produces the tokens, and pushes the steps that follow: a try of each task behind an output, in flow order and
// each once (the task itself may be one of them), a try of the task itself, the sweep of all other joins that the
// completion touched, and the check of the end condition.
//
//	        ┌─▶ (p) ─▶ b ─▶ ...
//	─▶ a ───┤                      try(b) try(c) try(a) sweep endCheck
//	        └─▶ (q) ─▶ c ─▶ ...
//
// The agenda is a stack, so b runs as far as it can before c is tried: if b is a routing task whose path ends the case,
// c is never enabled. All outputs are marked before the first task is tried, so an and-join behind p and q sees both
// tokens. The end check is last: a task that the completion enables is first enabled, with its items, and then
// withdrawn if the case ends. So the journal has all effects of the tokens before the end.
//
// The touched set is passed to the sweep here: what b changes is swept by the completion of b.
func (m *Machine) split(id workitem.CaseID, t net.TaskID, generation int, spec *workflow.Task) step {
	return func() error {
		c := m.tree.Case(id)
		if c.State.Final() {
			return nil
		}
		into, err := m.route(c, t, generation, spec)
		if err != nil {
			return m.failUnread(id, t, generation, err)
		}
		if err := m.emit(&state.Produced{Case: id, Task: t, Into: into}); err != nil {
			return err
		}
		for _, p := range into {
			m.joins.touch(c, p)
		}
		var steps []step
		seen := net.NewBits(len(c.Tasks))
		for _, p := range c.Net.Outputs(t) {
			for _, u := range c.Net.Consumers(p) {
				if !seen.Has(int(u)) {
					seen.Add(int(u))
					steps = append(steps, m.try(id, u))
				}
			}
		}
		m.agenda.push(append(steps, m.try(id, t), m.sweep(id, m.joins.take(id)), m.endCheck(id))...)
		return nil
	}
}

// endCheck completes a case whose end condition is marked. Other tokens do not prevent that: tasks that are still
// active are canceled, and the remaining tokens are recorded as an improper completion.
func (m *Machine) endCheck(id workitem.CaseID) step {
	return func() error {
		c := m.tree.Case(id)
		if c.Marking[c.Net.End()] > 0 {
			m.agenda.push(m.endCase(id, state.CaseCompleted, nil, false))
		}
		return nil
	}
}

// route returns the outputs of a completed task that get a token, in flow order.
func (m *Machine) route(c *state.Case, t net.TaskID, generation int, spec *workflow.Task) ([]net.ConditionID, error) {
	outputs, rule := c.Net.Outputs(t), c.Net.Task(t).Split
	if rule == net.And {
		return outputs, m.checkChoice(c, t)
	}
	targets, given := []string(nil), false
	if ch := m.choice; ch != nil && ch.at == c.ID && ch.t == t {
		targets, given, m.choice = ch.to, true, nil
	} else if spec.Route != nil {
		given = true
		a := m.callbacks.activation(c, t, generation)
		err := m.callbacks.call(c, t, "route", func(ctx context.Context) (err error) {
			targets, err = spec.Route(ctx, a)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if !given {
		if rule == net.Xor {
			return outputs[:1], nil
		}
		return outputs, nil
	}
	return targetsOf(c, t, rule, targets)
}

// checkChoice refuses a route that the caller gave for an and-split, which puts a token into every flow. If it were
// ignored, the caller would assume that it had effect. It ignores a route for another task.
func (m *Machine) checkChoice(c *state.Case, t net.TaskID) error {
	ch := m.choice
	if ch == nil || ch.at != c.ID || ch.t != t {
		return nil
	}
	m.choice = nil
	return fmt.Errorf("%w: task %s of workflow %s has an and-split, which takes every flow (%s); complete it without a route",
		ErrBadRoute, c.Net.TaskName(t), c.Workflow, flowsOf(c, t))
}

// targetsOf returns the outputs that a route names, each once and in flow order, whatever the order of the names. A
// name is that of a condition, or that of the task behind an implicit condition. A route without names is refused too,
// since the token would be lost.
func targetsOf(c *state.Case, t net.TaskID, rule net.Rule, names []string) ([]net.ConditionID, error) {
	chosen := make(map[net.ConditionID]bool, len(names))
	for _, name := range names {
		p, ok := c.Net.Target(t, name)
		if !ok {
			return nil, fmt.Errorf("%w: task %s of workflow %s has no flow to %q; it flows to %s",
				ErrBadRoute, c.Net.TaskName(t), c.Workflow, name, flowsOf(c, t))
		}
		chosen[p] = true
	}
	if len(chosen) == 0 || rule == net.Xor && len(chosen) > 1 {
		return nil, fmt.Errorf("%w: the %s-split of task %s of workflow %s was given %d flows (%s); it flows to %s",
			ErrBadRoute, rule, c.Net.TaskName(t), c.Workflow, len(chosen), strings.Join(names, ", "), flowsOf(c, t))
	}
	var into []net.ConditionID
	for _, p := range c.Net.Outputs(t) {
		if chosen[p] {
			into = append(into, p)
		}
	}
	return into, nil
}

// flowsOf lists the targets of a task for an error, by the names that a definition uses: an implicit condition has the
// name of the task behind it.
func flowsOf(c *state.Case, t net.TaskID) string {
	var names []string
	for _, p := range c.Net.Outputs(t) {
		name := c.Net.ConditionName(p)
		if c.Net.Implicit(p) {
			name = c.Net.TaskName(c.Net.Consumers(p)[0])
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
