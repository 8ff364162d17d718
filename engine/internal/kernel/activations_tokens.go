package kernel

import (
	"slices"

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
func (ac *activations) region(id workitem.CaseID, t net.TaskID) step {
	return func() error {
		c := ac.tree.Case(id)
		tasks, conditions := c.Net.Region(t)
		if len(tasks)+len(conditions) == 0 {
			return nil
		}
		emptied := slices.Clone(conditions)
		var steps []step
		for _, u := range tasks {
			switch c.Tasks[u].State {
			case state.TaskStarted:
				steps = append(steps, ac.cancelTask(id, u))
				ac.joins.retry(c, u)
			case state.TaskEnabled:
				steps = append(steps, ac.drop(id, u, state.TaskEnabled, state.TaskCanceled, nil))
				emptied = append(emptied, c.Net.PrivateInputs(u)...)
				ac.joins.retry(c, u)
			}
		}
		steps = append(steps, func() error { return ac.empty(id, t, emptied) })
		ac.agenda.push(steps...)
		return nil
	}
}

// empty removes all tokens from conditions, and withdraws the tasks whose joins are no longer satisfied. It runs as a
// separate step after those that cancel the members, so the hooks of a canceled member see the marking before the
// removal.
func (ac *activations) empty(id workitem.CaseID, t net.TaskID, conditions []net.ConditionID) error {
	var emptied []net.ConditionID
	for _, p := range conditions {
		tokens := ac.tree.Case(id).Marking[p]
		if tokens == 0 {
			continue
		}
		if err := ac.emit(&state.Removed{Case: id, Task: t, From: p, Tokens: tokens}); err != nil {
			return err
		}
		emptied = append(emptied, p)
	}
	ac.agenda.push(ac.withdrawals(ac.tree.Case(id), emptied)...)
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
func (ac *activations) split(id workitem.CaseID, t net.TaskID, generation int, spec *workflow.Task) step {
	return func() error {
		c := ac.tree.Case(id)
		if c.State.Final() {
			return nil
		}
		into, err := ac.routes.of(c, t, generation, spec)
		if err != nil {
			return ac.failUnread(id, t, generation, err)
		}
		if err := ac.emit(&state.Produced{Case: id, Task: t, Into: into}); err != nil {
			return err
		}
		for _, p := range into {
			ac.joins.touch(c, p)
		}
		var steps []step
		seen := net.NewBits(len(c.Tasks))
		for _, p := range c.Net.Outputs(t) {
			for _, u := range c.Net.Consumers(p) {
				if !seen.Has(int(u)) {
					seen.Add(int(u))
					steps = append(steps, ac.try(id, u))
				}
			}
		}
		ac.agenda.push(append(steps, ac.try(id, t), ac.sweep(id, ac.joins.take(id)), ac.endCheck(id))...)
		return nil
	}
}

// endCheck completes a case whose end condition is marked. Other tokens do not prevent that: tasks that are still
// active are canceled, and the remaining tokens are recorded as an improper completion.
func (ac *activations) endCheck(id workitem.CaseID) step {
	return func() error {
		c := ac.tree.Case(id)
		if c.Marking[c.Net.End()] > 0 {
			ac.agenda.push(ac.cases.endCase(id, state.CaseCompleted, nil, false))
		}
		return nil
	}
}

// sweep evaluates again every join that may have changed by tokens or busy tasks, besides those that are tried or
// withdrawn directly. It adds what was touched since to the given changes, which may be nil.
//
//	─▶ x ─┬─▶ a ─▶ (p) ─▶ j      j is an or-join, p is marked, q is not. While x may go to b, j waits.
//	      └─▶ b ─▶ (q) ─▶ j      x completes and goes to a: no condition next to j changes, and j may fire.
func (ac *activations) sweep(id workitem.CaseID, what *touched) step {
	return func() error {
		c := ac.tree.Case(id)
		if c.State.Final() {
			return nil
		}
		all := ac.joins.takeWith(what, id)
		if all == nil {
			return nil
		}
		var steps []step
		all.affected(c.Net).Each(func(t int) { steps = append(steps, ac.try(id, net.TaskID(t))) })
		ac.agenda.push(steps...)
		return nil
	}
}

// sweepAll pushes a sweep for each touched case, and reports whether there was any. It covers what no completion
// sweeps: a start that consumes tokens and withdraws tasks, a cancellation by a caller.
func (ac *activations) sweepAll() bool {
	cases := ac.joins.pending(ac.tree)
	for _, c := range cases {
		ac.agenda.push(ac.sweep(c.ID, nil))
	}
	return len(cases) > 0
}

// withdrawals returns the steps that withdraw the enabled tasks behind the conditions whose joins are no longer
// satisfied.
// A task that several of the conditions lead to is tried once.
func (ac *activations) withdrawals(c *state.Case, conditions []net.ConditionID) []step {
	var steps []step
	seen := net.NewBits(len(c.Tasks))
	for _, p := range conditions {
		ac.joins.touch(c, p)
		for _, u := range c.Net.Consumers(p) {
			if !seen.Has(int(u)) {
				seen.Add(int(u))
				steps = append(steps, ac.withdrawUnsatisfied(c.ID, u))
			}
		}
	}
	return steps
}

// withdrawUnsatisfied withdraws an enabled task if its join is no longer satisfied. Unlike try, it never enables one.
func (ac *activations) withdrawUnsatisfied(id workitem.CaseID, t net.TaskID) step {
	return func() error {
		if ac.tree.Case(id).Tasks[t].State != state.TaskEnabled {
			return nil
		}
		return ac.try(id, t)()
	}
}
