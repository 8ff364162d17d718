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
func (m *Machine) judge(
	id workitem.CaseID, t net.TaskID, generation int, o workitem.Outcome, failure *workitem.Failure,
) step {
	return func() error {
		c := m.tree.Case(id)
		if m.ending[id] || mustBeActive(c, t, generation) != nil || c.Net.Task(t).Kind == net.Routing {
			return nil
		}
		spec, err := m.definitions.task(c, t)
		if err != nil {
			return err
		}
		o.Tally = tallyOf(m.tree, c, t, generation)
		verdict, err := m.decide(c, t, spec.Policy, o)
		if it := o.Item; err == nil && o.State == workitem.Failed && it != nil && it.Successor.IsZero() && verdict != workitem.HoldTask {
			m.giveUpItem(c, spec, it, failure)
		}
		switch {
		case err != nil:
			return err
		case verdict == workitem.CompleteTask:
			m.agenda.push(m.ensureStarted(id, t, generation), m.complete(id, t, generation))
		case verdict == workitem.FailTask:
			m.agenda.push(m.ensureStarted(id, t, generation), m.fail(id, t, generation, unmet(m.tree, c, t, generation, spec.Policy, o.Tally, failure)))
		case verdict == workitem.HoldTask:
			if failure == nil {
				failure = unmet(m.tree, c, t, generation, spec.Policy, o.Tally, nil)
			}
			return m.hold(c, t, generation, o, failure)
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
func (m *Machine) judgeChild(child, id workitem.CaseID, t net.TaskID, to workitem.State) step {
	return func() error {
		c := m.tree.Case(child)
		m.child = child
		defer func() { m.child = workitem.CaseID{} }()
		return m.judge(id, t, c.Generation, workitem.Outcome{State: to}, c.Failure)()
	}
}

// decide asks a policy. A policy of the user is a callback like any other: it may panic or take too long. The built-in
// ones are pure functions and are called directly, since the switch to the goroutine of callbacks would cost more than
// they do.
func (m *Machine) decide(c *state.Case, t net.TaskID, p workitem.Policy, o workitem.Outcome) (workitem.Verdict, error) {
	if p.BuiltIn() {
		return p.Decide(o)
	}
	verdict := workitem.Continue
	err := m.callbacks.call(c, t, "policy "+p.Name(), func(context.Context) (err error) {
		verdict, err = p.Decide(o)
		return err
	})
	return verdict, err
}

// failUnread fails the case of an activation that reads an output which was never given. To roll back the command would
// not help, since each attempt would fail in the same way. It returns any other error.
func (m *Machine) failUnread(id workitem.CaseID, t net.TaskID, generation int, err error) error {
	if !errors.Is(err, activities.ErrNoOutput) {
		return err
	}
	failure := noOutput(err)
	m.agenda.push(m.ensureStarted(id, t, generation), m.fail(id, t, generation, failure),
		m.endCase(id, state.CaseFailed, failure, false)) // where the task has completed already
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
