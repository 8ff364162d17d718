package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The life cycle of a case. The hooks in parentheses are those of its definition. For the composite task above it, each
// change of state is a change of one of its items (childMoved):
//
//	create        started (onInitialized)
//	firstTasks    the tasks behind the start condition are tried
//	begin         the first work item or child case starts (onStarted); the cases above begin before it
//	endCheck      the end condition is marked: endCase(completed)
//	endCase       marks it as ending; tasks that are active are dropped, in the order of their definition
//	closeCase     final state, output; its jobs are canceled (onCompleted, onFailed, onCanceled)
//	childMoved    the parent's hook answers, and its policy judges, unless the end came from above
//
// A started case need not have begun: a case whose first work waits for a person has not. Lists of cases that have
// begun leave those out.

// cases is the life cycle of cases: it opens root cases and child cases, lets them begin, and ends them with everything in them.
type cases struct {
	*record
	agenda      *agenda
	joins       *joins
	callbacks   *callbacks
	definitions *definitions
	jobs        *jobs
	recorded    *recordedSteps
	keys        *keys
	activations *activations
	suspensions Suspensions

	ending map[workitem.CaseID]bool // cases between endCase and closeCase, in which nothing is enabled
}

// isEnding reports whether a case is between endCase and closeCase.
func (cs *cases) isEnding(id workitem.CaseID) bool { return cs.ending[id] }

// begin records that the first work of a case starts: first for the composite task that runs it, and so on up to the
// root. It happens once per case. A case that a step runs has a job above it instead of a composite task; that job is
// already running, so nothing above has to be started.
func (cs *cases) begin(id workitem.CaseID) step {
	return func() error {
		c := cs.tree.Case(id)
		if c.Begun || c.State.Final() {
			return nil
		}
		begun := func() error {
			if cs.tree.Case(id).State.Final() {
				return nil
			}
			return cs.emit(&state.CaseBegun{Case: id})
		}
		d, err := cs.definitions.of(c)
		if err != nil {
			return err
		}
		hook := cs.callbacks.caseHook(id, "onStarted", d.Hooks.OnStarted)
		if c.Parent.IsZero() || !c.Caller.IsZero() {
			cs.agenda.push(begun, hook)
			return nil
		}
		parent := cs.tree.Case(c.Parent)
		t, _ := parent.Net.TaskByName(c.ParentTask)
		cs.agenda.push(cs.activations.ensureStarted(parent.ID, t, c.Generation), begun, hook,
			cs.childMoved(id, workitem.Initialized, workitem.Started, false))
		return nil
	}
}

// childMoved notifies a composite task of the change of a child case, and asks its policy if the case has ended. For
// the composite task, a child case is what a work item is for an atomic task: initialized, started, then in one of the
// final states.
func (cs *cases) childMoved(id workitem.CaseID, from, to workitem.State, judge bool) step {
	return func() error {
		c := cs.tree.Case(id)
		if c.Parent.IsZero() {
			return nil
		}
		if !c.Caller.IsZero() {
			cs.agenda.push(cs.jobs.calleeEnded(id))
			return nil
		}
		parent := cs.tree.Case(c.Parent)
		t, _ := parent.Net.TaskByName(c.ParentTask)
		spec, err := cs.definitions.task(parent, t)
		if err != nil {
			return err
		}
		steps := []step{cs.callbacks.changeHook(parent.ID, t, c.Generation, spec, false, func(change *activities.Change) {
			change.Child, change.Workflow, change.From, change.To = id, c.Workflow, from, to
		}), cs.agenda.release}
		if judge && to.Final() {
			steps = append(steps, cs.activations.judgeChild(id, parent.ID, t, to))
		}
		cs.agenda.push(steps...)
		return nil
	}
}

// endCase ends a case: first its tasks are shut down, in the order of their definition, then the case itself moves,
// then its parent answers. A teardown comes from above, so the parent's policy is not asked: it has decided already,
// and a second verdict of the same activation would be one too many.
//
// A case is marked as ending from here until it has ended. The cancellation of its last item would otherwise be judged,
// and complete a task of a case that was to be canceled:
//
//	cancel case ─▶ cancelTask(a) ─▶ item a.1.1 canceled ─▶ (policy: complete a) is not asked, the case is ending
func (cs *cases) endCase(id workitem.CaseID, to state.CaseState, failure *workitem.Failure, teardown bool) step {
	return func() error {
		c := cs.tree.Case(id)
		if c.State.Final() || cs.ending[id] {
			return nil
		}
		// The tree does not record that a case is ending: after a command it has either ended, or the command was
		// rolled back.
		if cs.ending == nil {
			cs.ending = make(map[workitem.CaseID]bool)
		}
		cs.ending[id] = true
		// The hook of the parent gets the change from this state, and is called after the case has moved.
		before, reason := c.ItemState(), lostBy(to, failure)
		steps := make([]step, 0, 8)
		for t := range c.Tasks {
			switch c.Tasks[t].State {
			case state.TaskEnabled:
				steps = append(steps, cs.activations.drop(id, net.TaskID(t), state.TaskEnabled, state.TaskDisabled, reason))
			case state.TaskStarted:
				steps = append(steps, cs.activations.drop(id, net.TaskID(t), state.TaskStarted, state.TaskCanceled, reason))
			}
		}
		steps = append(steps, cs.closeCase(id, to, failure, before, teardown))
		cs.agenda.push(steps...)
		return nil
	}
}

// keepUntil returns the time until which a case is kept. A case that was started with [workflow.Throttle] is kept at
// least for the window, since it counts against the limit until then.
func keepUntil(c *state.Case, until time.Time) (time.Time, error) {
	if len(c.Options) == 0 {
		return until, nil
	}
	o, err := workflow.OptionsOf(Info(c))
	if counts := c.Created.Add(o.Window); counts.After(until) {
		until = counts
	}
	return until, err
}

// closeCase is the last part of endCase: the case moves to its final state, with its output, its jobs are canceled, and
// its hook and then its parent answer. An output that reads what was never given makes a failed case of a completed
// one, by the same step; any other error of it undoes the command.
//
// Jobs are canceled after the case has moved and before its hook runs: what the hook schedules is for after the end,
// and stays.
func (cs *cases) closeCase(
	id workitem.CaseID, to state.CaseState, failure *workitem.Failure, before workitem.State, teardown bool,
) step {
	return func() error {
		c := cs.tree.Case(id)
		d, err := cs.definitions.of(c)
		if err != nil {
			return err
		}
		end := &state.CaseEnded{Case: id, State: to, Failure: failure, At: cs.now}
		if d.Sweep && c.Parent.IsZero() {
			if end.KeepUntil, err = keepUntil(c, cs.now.Add(d.Keep)); err != nil {
				return err
			}
		}
		hook := cs.callbacks.caseHook(id, "onCanceled", d.Hooks.OnCanceled)
		switch to {
		case state.CaseCompleted:
			hook = cs.callbacks.caseHook(id, "onCompleted", d.Hooks.OnCompleted)
			end.Leftover = leftover(c)
			if end.FreesKey, err = queued(c); err != nil {
				return err
			}
			if d.Output != nil {
				end.Output, err = cs.output(c, d)
				if errors.Is(err, activities.ErrNoOutput) {
					cs.agenda.push(cs.closeCase(id, state.CaseFailed, noOutput(err), before, teardown))
					return nil
				}
				if err != nil {
					return err
				}
			}
		case state.CaseFailed:
			hook = cs.callbacks.caseHook(id, "onFailed", d.Hooks.OnFailed)
		}
		if err := cs.emit(end); err != nil {
			return err
		}
		if err := cs.jobs.cancel(id, attached(cs.tree.Case(id))); err != nil {
			return err
		}
		delete(cs.ending, id)
		cs.joins.drop(id)
		cs.agenda.push(hook, cs.agenda.release, cs.childMoved(id, before, cs.tree.Case(id).ItemState(), !teardown))
		return nil
	}
}

// output computes the output of a completed case. An output that needs no user code is read directly.
func (cs *cases) output(c *state.Case, d *workflow.Definition) (output json.RawMessage, err error) {
	if d.PlainOutput != nil {
		output, err = d.PlainOutput(Info(c))
		return output, located(c, -1, "output", err)
	}
	s := cs.callbacks.caseScope(c)
	err = cs.callbacks.call(c, -1, "output", func(context.Context) (err error) {
		output, err = d.Output(s)
		return err
	})
	return output, err
}

// attached returns the live jobs that end with their case: all except the detached ones, which the end of a case has
// left or a caller has asked to outlive it.
func attached(c *state.Case) []*state.Job {
	return slices.DeleteFunc(slices.Collect(c.Jobs.All()), func(j *state.Job) bool { return j.Detached })
}

// leftover lists the marked conditions of a completed case, other than its end.
// One token in the end condition is what a completed case has. More than one, or a token elsewhere, is what only an
// unsound definition leaves, and the journal records it.
func leftover(c *state.Case) []net.ConditionID {
	var left []net.ConditionID
	for p, tokens := range c.Marking {
		if tokens > 0 && (net.ConditionID(p) != c.Net.End() || tokens > 1) {
			left = append(left, net.ConditionID(p))
		}
	}
	return left
}

// mustBeActive returns an error if an activation has ended, or does not exist yet. The generation distinguishes it from
// later activations of the same task: a worker that reports on the first round of a loop must not change the second.
func mustBeActive(c *state.Case, t net.TaskID, generation int) error {
	task := c.Tasks[t]
	if c.State.Final() || !task.State.Active() || task.Generation != generation {
		return fmt.Errorf("activation %d of task %s of workflow %s %w: the task is %s in activation %d, the case is %s",
			generation, c.Net.TaskName(t), c.Workflow, activities.ErrInactive, task.State, task.Generation, c.State)
	}
	return nil
}
