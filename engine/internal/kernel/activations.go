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

// activations is the life cycle of the activations of tasks, and with it the movement of tokens: an activation begins when the join of its
// task is satisfied, consumes tokens when its first item or child case starts, ends as its policy judges, and produces tokens by its
// split.
type activations struct {
	*record
	agenda      *agenda
	joins       *joins
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	incidents   *incidents
	items       *items
	routes      *routes
	cases       activationCases

	loops     loops
	child     workitem.CaseID // the child case whose end the policy is asked about
	exhausted []GivenUp       // work items without further attempts
}

// activationCases is what activations need of cases: the case of an activation begins with its first work and may end with it, and an
// activation of a composite task opens child cases.
type activationCases interface {
	caseEnder
	begin(id workitem.CaseID) step
	isEnding(id workitem.CaseID) bool
	openChild(at workitem.CaseID, t net.TaskID, generation int, n activities.NewCase) (workitem.CaseID, []step, error)
}

// reset forgets what was of a command.
func (ac *activations) reset() {
	ac.loops, ac.child, ac.exhausted = loops{}, workitem.CaseID{}, nil
}

// try evaluates the join of a task: it enables the task if the join is satisfied, and withdraws an enabled task if it
// no longer is. It is idempotent, so a task may be tried several times in one command.
//
//	            join satisfied    not satisfied
//	not active  enable            -
//	enabled     -                 withdraw
//	started     -                 -             its tokens are consumed; it ends when it completes or is canceled
//
// In a case that is ending, no task is enabled: its tasks are withdrawn one after the other, and a token that a
// completion has produced would enable one of them again.
//
// An or-join whose search exceeded its budget waits, with an incident. If it fired wrongly, it would consume a token of
// a later activation, and no later step could restore that. It is evaluated again after the next change of its slice.
func (ac *activations) try(id workitem.CaseID, t net.TaskID) step {
	return func() error {
		c := ac.tree.Case(id)
		task := c.Tasks[t]
		if c.State.Final() || ac.cases.isEnding(id) || task.State == state.TaskStarted {
			return nil
		}
		var busy net.Bits
		// Only an or-join depends on tasks that are under way: they have consumed tokens, and may produce others that
		// reach it.
		if c.Net.Task(t).Join == net.Or {
			busy = c.Busy()
		}
		d := c.Net.Enabled(t, c.Marking, busy)
		if err := ac.incidents.ofOrJoin(c, t, d.Undecided); err != nil {
			return err
		}
		switch {
		case d.Undecided:
			return ac.note(id, t, state.NoteUndecided, fmt.Sprintf("or-join %s waits: its search ran out of its budget", c.Net.TaskName(t)))
		case d.Enabled && task.State != state.TaskEnabled:
			return ac.enable(c, t)
		case !d.Enabled && task.State == state.TaskEnabled:
			ac.agenda.push(ac.withdraw(id, t))
		}
		return nil
	}
}

// enable begins a new activation. No token is consumed: several tasks may be enabled by one token (a deferred choice),
// and the first one that starts takes it.
//
// The hook runs before the items are created, since it may create them itself. A routing task has no items: it starts
// and completes in the same command, before the tasks that share its inputs are tried, so that no two routing tasks see
// the same token.
func (ac *activations) enable(c *state.Case, t net.TaskID) error {
	spec, err := ac.definitions.task(c, t)
	if err != nil {
		return err
	}
	id, generation := c.ID, c.Tasks[t].Generation+1
	if err := ac.loops.count(c, t, generation); err != nil {
		return err
	}
	if err := ac.emit(&state.TaskMoved{Case: id, Task: t, To: state.TaskEnabled, Generation: generation}); err != nil {
		return err
	}
	hook := ac.callbacks.taskHook(id, t, generation, "onEnabled", spec.Hooks.OnEnabled)
	if c.Net.Task(t).Kind == net.Routing {
		ac.agenda.push(hook, ac.agenda.release, ac.ensureStarted(id, t, generation), ac.complete(id, t, generation))
		return nil
	}
	ac.agenda.push(hook, ac.populate(id, t, generation, spec), ac.startTimers(id, t, generation, spec), ac.agenda.release)
	return nil
}

// populate creates the work items or child cases that the definition requires. It checks the activation first, since
// the hook before it may have ended it, for example by the cancellation of an item that it created.
func (ac *activations) populate(id workitem.CaseID, t net.TaskID, generation int, spec *workflow.Task) step {
	return func() error {
		c := ac.tree.Case(id)
		if mustBeActive(c, t, generation) != nil {
			return nil
		}
		if c.Net.Task(t).Kind == net.Composite {
			return ac.populateCases(c, t, generation, spec)
		}
		inputs, err := ac.inputs(c, t, generation, spec)
		if err != nil {
			return ac.failUnread(id, t, generation, err)
		}
		for _, input := range inputs {
			if _, err := ac.items.open(id, t, generation, activities.NewItem{Input: input}); err != nil {
				return err
			}
		}
		return nil
	}
}

// inputs returns the payloads of the items that the definition requires. Inputs without user code are read directly,
// since a callback costs two switches between goroutines.
func (ac *activations) inputs(c *state.Case, t net.TaskID, generation int, spec *workflow.Task) (inputs []json.RawMessage, err error) {
	switch {
	case spec.PlainInput != nil:
		input, err := spec.PlainInput(Info(c))
		return []json.RawMessage{input}, located(c, t, "input", err)
	case spec.Inputs != nil:
		a := ac.callbacks.activation(c, t, generation)
		err = ac.callbacks.call(c, t, "input", func(ctx context.Context) (err error) {
			inputs, err = spec.Inputs(ctx, a)
			return err
		})
		return inputs, err
	}
	return []json.RawMessage{nil}, nil
}

// populateCases creates all child cases before the first of them runs, so that the policy sees all of them even if one
// ends at once.
// Each child case raises the bound on the steps of the command: a task with a thousand cases is no endless loop.
func (ac *activations) populateCases(c *state.Case, t net.TaskID, generation int, spec *workflow.Task) error {
	cases := []activities.NewCase{{}}
	if spec.Cases != nil {
		a := ac.callbacks.activation(c, t, generation)
		err := ac.callbacks.call(c, t, "cases", func(ctx context.Context) (err error) {
			cases, err = spec.Cases(ctx, a)
			return err
		})
		if err != nil {
			return ac.failUnread(c.ID, t, generation, err)
		}
	}
	var steps []step
	for _, n := range cases {
		id, begin, err := ac.cases.openChild(c.ID, t, generation, n)
		if err != nil {
			return err
		}
		ac.agenda.addRoom(ac.tree.Case(id).Net.NumTasks())
		steps = append(steps, begin...)
	}
	ac.agenda.push(steps...)
	return nil
}

// ensureStarted starts an activation that has not started: first the case and everything above it, then the task. So
// the first item that is started in a leaf starts the path from the root to the leaf:
//
//	root case begun ── composite task k started ── child case begun ── task c started ── item c.1.1 started
func (ac *activations) ensureStarted(id workitem.CaseID, t net.TaskID, generation int) step {
	return func() error {
		c := ac.tree.Case(id)
		if c.Tasks[t].State != state.TaskEnabled || c.Tasks[t].Generation != generation {
			return nil
		}
		ac.agenda.push(ac.cases.begin(id), ac.start(id, t, generation))
		return nil
	}
}

// start consumes the tokens of an enabled task, and withdraws the tasks that compete for them.
//
//	      ┌─▶ a (enabled)      a starts       ┌─▶ a (started)
//	(p:1) ┤                   ─────────▶ (p:0)┤
//	      └─▶ b (enabled)                     └─▶ b (disabled, its items canceled)
//
// A competing task that still has enough tokens is not withdrawn: with two tokens in p, b stays enabled, in the same
// activation. The withdrawals come before onStarted, so that the hook sees the case without them. The policy is asked
// too, with an outcome without an item, since it may count starts.
func (ac *activations) start(id workitem.CaseID, t net.TaskID, generation int) step {
	return func() error {
		c := ac.tree.Case(id)
		task := c.Tasks[t]
		if c.State.Final() || task.State != state.TaskEnabled || task.Generation != generation {
			return nil
		}
		spec, err := ac.definitions.task(c, t)
		if err != nil {
			return err
		}
		// The tokens are determined at the start and not when the task was enabled: an or-join may have got more of
		// them since.
		consumed := c.Net.Consumes(nil, t, c.Marking)
		err = ac.emit(&state.TaskMoved{
			Case: id, Task: t, To: state.TaskStarted, Generation: generation, Consumed: consumed,
		})
		if err != nil {
			return err
		}
		ac.joins.touchBusy(c, t)
		steps := ac.withdrawals(c, consumed)
		steps = append(steps, ac.callbacks.taskHook(id, t, generation, "onStarted", spec.Hooks.OnStarted),
			ac.judge(id, t, generation, workitem.Outcome{}, nil))
		ac.agenda.push(steps...)
		return nil
	}
}

// complete completes an activation: it cancels the children, then calls onCompleted, then executes the region, the
// split, and the check of the end condition.
//
// The region is emptied before the tokens are produced, because a task may name one of its own outputs in its region,
// and the new token must stay. onCompleted comes before both, so that an error in it leaves the marking unchanged.
func (ac *activations) complete(id workitem.CaseID, t net.TaskID, generation int) step {
	return ac.leave(id, t, generation, state.TaskCompleted, func(c *state.Case, spec *workflow.Task) []step {
		return []step{
			ac.callbacks.taskHook(id, t, generation, "onCompleted", spec.Hooks.OnCompleted), ac.agenda.release,
			ac.region(id, t), ac.split(id, t, generation, spec),
		}
	})
}

// fail fails an activation, and its case with it. It produces no tokens, since a failed task has not chosen any of its
// flows. If the case is a child, the policy of its parent decides what the failure means there (see closeCase).
func (ac *activations) fail(id workitem.CaseID, t net.TaskID, generation int, failure *workitem.Failure) step {
	return ac.leave(id, t, generation, state.TaskFailed, func(c *state.Case, spec *workflow.Task) []step {
		return []step{
			ac.callbacks.taskHook(id, t, generation, "onFailed", spec.Hooks.OnFailed), ac.agenda.release,
			ac.cases.endCase(id, state.CaseFailed, failure, false),
		}
	})
}

// leave moves a started task to a final state and cancels what it still owns. It checks the state and the generation,
// so an activation ends once, and a late verdict has no effect.
func (ac *activations) leave(
	id workitem.CaseID, t net.TaskID, generation int, to state.TaskState, rest func(*state.Case, *workflow.Task) []step,
) step {
	return func() error {
		c := ac.tree.Case(id)
		task := c.Tasks[t]
		if c.State.Final() || task.State != state.TaskStarted || task.Generation != generation {
			return nil
		}
		spec, err := ac.definitions.task(c, t)
		if err != nil {
			return err
		}
		if err := ac.emit(&state.TaskMoved{Case: id, Task: t, To: to, Generation: generation}); err != nil {
			return err
		}
		ac.joins.touchBusy(c, t)
		ac.agenda.push(rest(c, spec)...)
		// What a failed task cancels is marked, so that a resume opens it again. What a completed one cancels was not
		// needed.
		var reason *workitem.Failure
		if to == state.TaskFailed {
			reason = lost
		}
		ac.agenda.push(ac.cancelOwned(id, t, generation, reason))
		return nil
	}
}

// withdraw disables an enabled task: its tokens stay, or were consumed by another task.
func (ac *activations) withdraw(id workitem.CaseID, t net.TaskID) step {
	return ac.drop(id, t, state.TaskEnabled, state.TaskDisabled, nil)
}

// cancelTask cancels a started task.
func (ac *activations) cancelTask(id workitem.CaseID, t net.TaskID) step {
	return ac.drop(id, t, state.TaskStarted, state.TaskCanceled, nil)
}

// drop ends an activation together with everything that it owns, without asking its policy. The reason is [lost] if the
// case fails, and nil otherwise.
func (ac *activations) drop(id workitem.CaseID, t net.TaskID, from, to state.TaskState, reason *workitem.Failure) step {
	return func() error {
		c := ac.tree.Case(id)
		task := c.Tasks[t]
		if task.State != from {
			return nil
		}
		spec, err := ac.definitions.task(c, t)
		if err != nil {
			return err
		}
		moved := &state.TaskMoved{Case: id, Task: t, To: to, Generation: task.Generation}
		moved.Lost = reason != nil && from == state.TaskStarted
		if err := ac.emit(moved); err != nil {
			return err
		}
		hook := ac.callbacks.taskHook(id, t, task.Generation, "onCanceled", spec.Hooks.OnCanceled)
		if to == state.TaskDisabled {
			hook = ac.callbacks.taskHook(id, t, task.Generation, "onDisabled", spec.Hooks.OnDisabled)
		}
		if from == state.TaskStarted {
			ac.joins.touchBusy(c, t)
		}
		ac.agenda.push(ac.cancelOwned(id, t, task.Generation, reason), hook, ac.agenda.release)
		return nil
	}
}

// cancelOwned cancels the live items, child cases and jobs of an activation. Jobs that the activation owns directly,
// its timers, are canceled at once; those of its items and child cases are canceled with them. The steps pushed here
// run before those of the caller, so an activation owns nothing any more when its onCompleted, onFailed or onCanceled
// runs.
func (ac *activations) cancelOwned(id workitem.CaseID, t net.TaskID, generation int, reason *workitem.Failure) step {
	return func() error {
		c := ac.tree.Case(id)
		name := c.Net.TaskName(t)
		var steps []step
		for it := range c.Items.All() {
			if it.Task == name && it.Generation == generation && it.State.Live() {
				steps = append(steps, ac.items.tearDown(id, it.ID, reason))
			}
		}
		if c.Net.Task(t).Kind == net.Composite {
			children := slices.Collect(ac.tree.Children(id, name, generation))
			for _, child := range slices.Backward(children) {
				steps = append(steps, ac.cases.endCase(child.ID, state.CaseCanceled, reason, true))
			}
		}
		ac.agenda.push(steps...)
		// An incident of an item is canceled here too: its item has ended, and nothing else would end it.
		var jobs []*state.Job
		for j := range c.Jobs.All() {
			if (j.Item.IsZero() || j.Kind == state.JobIncident) && j.Owned(name, generation) {
				jobs = append(jobs, j)
			}
		}
		return ac.jobs.cancel(id, jobs)
	}
}

// startTimers schedules the timers of an activation. Those of its items are scheduled with each item, as they count
// from the time at which the item is due. They get greater ids than the jobs of the items, so if timers of both are due
// at the same time, those of the items come first.
func (ac *activations) startTimers(id workitem.CaseID, t net.TaskID, generation int, spec *workflow.Task) step {
	if len(spec.Timers) == 0 {
		return nil
	}
	return func() error {
		c := ac.tree.Case(id)
		if mustBeActive(c, t, generation) != nil {
			return nil
		}
		for i := range spec.Timers {
			timer := &spec.Timers[i]
			if timer.Task == nil {
				continue
			}
			err := ac.jobs.open(id, &state.Job{Kind: state.JobTimer, Name: timer.Name, Task: c.Net.TaskName(t),
				Generation: generation, Due: ac.now.Add(timer.After)})
			if err != nil {
				return err
			}
		}
		return nil
	}
}
