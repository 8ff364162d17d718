package kernel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// judge asks the policy what an outcome means for the task, and executes its verdict. If the activation has not
// started, it is started first: so its tokens are consumed, and it cannot run twice.
//
//	a (enabled, one item)    cancel a.1.1: the policy says complete
//	without the start        a completes, its input keeps its token, a is enabled again and runs twice
//	with it                  a consumes, completes, and puts out once
//
// A case that is being shut down is not judged, nor an activation that has ended: of two items that end in one command,
// the first may have completed the task.
func (ac *activations) judge(
	id workitem.CaseID, t net.TaskID, generation int, o workitem.Outcome, failure *workitem.Failure,
) step {
	return func() error {
		c := ac.tree.Case(id)
		if ac.cases.isEnding(id) || mustBeActive(c, t, generation) != nil || c.Net.Task(t).Kind == net.Routing {
			return nil
		}
		spec, err := ac.definitions.task(c, t)
		if err != nil {
			return err
		}
		o.Tally = tallyOf(ac.tree, c, t, generation)
		verdict, err := ac.decide(c, t, spec.Policy, o)
		if it := o.Item; err == nil && o.State == workitem.Failed && it != nil && it.Successor.IsZero() && verdict != workitem.HoldTask {
			ac.giveUpItem(c, spec, it, failure)
		}
		switch {
		case err != nil:
			return err
		case verdict == workitem.CompleteTask:
			ac.agenda.push(ac.ensureStarted(id, t, generation), ac.complete(id, t, generation))
		case verdict == workitem.FailTask:
			ac.agenda.push(ac.ensureStarted(id, t, generation), ac.fail(id, t, generation, unmet(ac.tree, c, t, generation, spec.Policy, o.Tally, failure)))
		case verdict == workitem.HoldTask:
			if failure == nil {
				failure = unmet(ac.tree, c, t, generation, spec.Policy, o.Tally, nil)
			}
			return ac.hold(c, t, generation, o, failure)
		case verdict != workitem.Continue:
			return fmt.Errorf("policy %s of task %s: %w", spec.Policy.Name(), c.Net.TaskName(t),
				errors.New("returned no verdict"))
		}
		return nil
	}
}

// maxCauses is the maximum number of failures in the message of a policy that is not met.
const maxCauses = 3

// unmet returns the failure of a task that its policy fails. If the task has several items or child cases, one of their failures does
// not say why: the message counts them, and has the first failures. The code and the details are those of the latest failure.
//
//	1 of 3 work items of task vote completed, and 2 are needed: vote.1.2: no-funds: the account is empty
func unmet(tree *state.Tree, c *state.Case, t net.TaskID, generation int, p workitem.Policy, tally workitem.Tally, latest *workitem.Failure) *workitem.Failure {
	demand := p.Demand()
	if demand == "" && (p.BuiltIn() || latest != nil) || latest != nil && tally.Total() == 1 {
		return latest
	}
	if demand == "" {
		demand = "its policy " + p.Name() + " fails it"
	}
	what := "work items"
	if c.Net.Task(t).Kind == net.Composite {
		what = "child cases"
	}
	text := fmt.Sprintf("%d of %d %s of task %s completed, and %s", tally.Completed, tally.Total(), what, c.Net.TaskName(t), demand)
	var causes []string
	for label, f := range failures(tree, c, t, generation) {
		if len(causes) == maxCauses {
			causes = append(causes, fmt.Sprintf("and %d more", tally.Failed-maxCauses))
			break
		}
		causes = append(causes, label+": "+f.String())
	}
	if causes != nil {
		text += ": " + strings.Join(causes, "; ")
	}
	failure := workitem.Failure{Code: workitem.CodePolicy}
	if latest != nil {
		failure = *latest
	}
	failure.Message = text
	return workitem.FailureOf(&failure) // bounded
}

// failures yields the failed items or child cases of an activation by label, oldest first, without those that have been replaced.
func failures(tree *state.Tree, c *state.Case, t net.TaskID, generation int) iter.Seq2[string, *workitem.Failure] {
	name := c.Net.TaskName(t)
	return func(yield func(string, *workitem.Failure) bool) {
		if c.Net.Task(t).Kind == net.Composite {
			children := slices.Collect(tree.Children(c.ID, name, generation))
			for _, child := range slices.Backward(children) {
				if child.ItemState() == workitem.Failed && !yield(child.Label(), child.Failure) {
					return
				}
			}
			return
		}
		for it := range c.Items.All() {
			if it.Task == name && it.Generation == generation && it.State == workitem.Failed && it.Successor.IsZero() && !yield(it.Label(), it.Failure) {
				return
			}
		}
	}
}

// judgeChild judges the end of a child case.
func (ac *activations) judgeChild(child, id workitem.CaseID, t net.TaskID, to workitem.State) step {
	return func() error {
		c := ac.tree.Case(child)
		ac.child = child
		defer func() { ac.child = workitem.CaseID{} }()
		return ac.judge(id, t, c.Generation, workitem.Outcome{State: to}, c.Failure)()
	}
}

// decide asks a policy. A policy of the user is a callback like any other: it may panic or take too long. The built-in
// ones are pure functions and are called directly, since the switch to the goroutine of callbacks would cost more than
// they do.
func (ac *activations) decide(c *state.Case, t net.TaskID, p workitem.Policy, o workitem.Outcome) (workitem.Verdict, error) {
	if p.BuiltIn() {
		return p.Decide(o)
	}
	verdict := workitem.Continue
	err := ac.callbacks.call(c, t, "policy "+p.Name(), func(context.Context) (err error) {
		verdict, err = p.Decide(o)
		return err
	})
	return verdict, err
}

// failUnread fails the case of an activation that reads an output which was never given. To roll back the command would
// not help, since each attempt would fail in the same way. It returns any other error.
func (ac *activations) failUnread(id workitem.CaseID, t net.TaskID, generation int, err error) error {
	if !errors.Is(err, activities.ErrNoOutput) {
		return err
	}
	failure := noOutput(err)
	ac.agenda.push(ac.ensureStarted(id, t, generation), ac.fail(id, t, generation, failure),
		ac.cases.endCase(id, state.CaseFailed, failure, false)) // where the task has completed already
	return nil
}

// noOutput returns the failure of a case whose output could not be computed, or is not valid.
func noOutput(err error) *workitem.Failure {
	return &workitem.Failure{Code: workitem.CodeNoOutput, Message: err.Error()}
}

// tallyOf counts the items or the child cases of an activation by state.
func tallyOf(tree *state.Tree, c *state.Case, t net.TaskID, generation int) workitem.Tally {
	if c.Net.Task(t).Kind == net.Composite {
		return tree.ChildTally(c.ID, c.Net.TaskName(t), generation)
	}
	return c.Items.Tally(c.Net.TaskName(t), generation)
}

// hold keeps an activation active that its policy would fail otherwise, and opens an incident for what failed.
func (ac *activations) hold(c *state.Case, t net.TaskID, generation int, o workitem.Outcome, f *workitem.Failure) error {
	name := c.Net.TaskName(t)
	held := func(j *state.Job) bool { return isIncident(j) && j.Owned(name, generation) }
	if o.State != workitem.Failed && o.State != workitem.Canceled && slices.ContainsFunc(c.Jobs.Slice(), held) {
		return nil // the activation is already held open by an incident, and o is not a further failure
	}
	j := &state.Job{Name: state.IncidentAttempts, Task: name, Generation: generation, Failure: f}
	what := "task " + name
	if child := ac.tree.Case(ac.child); o.Item != nil {
		j.Item, what = o.Item.ID, "work item "+o.Item.Label()
	} else if child != nil {
		j.Name, what = state.IncidentCase, "case "+child.Label()
		var err error
		if j.Input, err = (state.Subject{Case: child.ID}).Encode(); err != nil {
			return err
		}
	}
	// The task may only be enabled, as when its item is canceled before it has started. An enabled task could be
	// withdrawn, and the incident with it.
	ac.agenda.push(ac.ensureStarted(c.ID, t, generation))
	return ac.incidents.open(c.ID, t, j, fmt.Sprintf("%s is %s, and its policy holds the task open: %s", what, o.State, f))
}

// giveUpItem records that an item is given up, if its task has a dead letter. It collects the attempts now, because the
// case no longer has them if the same command enables the task again.
func (ac *activations) giveUpItem(c *state.Case, spec *workflow.Task, it *workitem.Item, f *workitem.Failure) {
	if spec.DeadLetter != nil {
		ac.exhausted = append(ac.exhausted, GivenUp{Attempts(c, it), f, spec.DeadLetter})
	}
}
