package kernel

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A failed case is resumed where it failed: what the failure ended continues, and completed work is not repeated. The
// failure ended three kinds of things, each of which is visible in the tree:
//
//   - the activation that failed, and those that were started beside it ([state.Task.Lost]): their tokens are consumed, so
//     they continue as the activations that they are, with a fresh item instead of each one that failed or was canceled then;
//   - activations that were only enabled: their tokens are where they were, so they are enabled again;
//   - cases below that failed, or were canceled then: they are resumed likewise.

// A worked case. Tasks b and c run side by side, and d is enabled, when the only item of b fails for good:
//
//	             before the failure     after it                  after the resume
//	b            started, item b.1.1    failed; b.1.1 failed      started; b.1.2 takes the place of b.1.1
//	c            started, item c.1.1    canceled; c.1.1 lost      started; c.1.2 takes the place of c.1.1
//	d            enabled                disabled; its token stays enabled, in a new activation
//	case         started                failed                    started
//
// An item of c that a person had canceled before the failure does not come back: its reason is not [lost].

// lost is the reason for the cancellation of everything that ends because its case fails.
var lost = &workitem.Failure{Code: workitem.CodeCaseFailed, Message: "its case failed"}

// lostBy returns [lost] if the end of a case is one that a resume can undo; nil otherwise.
func lostBy(to state.CaseState, failure *workitem.Failure) *workitem.Failure {
	if to == state.CaseFailed || isLost(failure) {
		return lost
	}
	return nil
}

// isLost reports whether an item ended because its case failed, and not by itself. Only such an item is reopened
// automatically.
func isLost(f *workitem.Failure) bool { return f != nil && f.Code == workitem.CodeCaseFailed }

// resumption is one resume: of a case, or because of one of its work items.
type resumption struct {
	item  workitem.ID     // the item that the input is for; zero for the failed one
	input json.RawMessage // nil if every new item takes that of its predecessor
	given int             // the number of items that have taken the input

	policy *retry.Changes // of the retry policy of the items that replace failed ones; nil for none
}

// forItem reports whether what is given with the resume, an input or a policy, is for the item that replaces another one.
func (r *resumption) forItem(it *workitem.Item) bool {
	return r.item == it.ID || r.item.IsZero() && it.State == workitem.Failed
}

// inputOf returns the input of the new item that replaces another one.
func (r *resumption) inputOf(it *workitem.Item) json.RawMessage {
	if len(r.input) == 0 || !r.forItem(it) {
		return it.Input
	}
	r.given++
	return r.input
}

// Resume continues a suspended or failed case: a suspended one starts what is due, and a failed one continues where it
// failed. If the cases above it failed with it, they continue too: the topmost of them is resumed, with everything
// below it that the failure ended. An input, if given, is for the new item that replaces the failed one, of which there
// must be exactly one. Changes of the retry policy, if given, are for all that replace failed ones. Resume returns the case
// that was resumed.
//
// The error wraps [workflow.ErrNotFailed] if the case is not suspended and did not fail, [activities.ErrInactive] if
// nothing waits for it any more, and [workflow.ErrDeadEnd] if what it lost cannot be opened again.
func (rp *Repairs) Resume(id workitem.CaseID, input json.RawMessage, policy *retry.Changes) (workitem.CaseID, error) {
	if c := rp.tree.Case(id); c != nil && c.Suspended != nil {
		if len(input) > 0 || policy != nil {
			return id, fmt.Errorf("%w: case %s is suspended, and goes on with the inputs and retry policies that it has", workflow.ErrBadCommand, id)
		}
		return id, rp.continueCase(c)
	}
	return rp.resume(id, &resumption{input: input, policy: policy})
}

// resume opens again what the failure ended, and then checks what is only known afterwards: that the input was used,
// and that something in the case can happen. If not, the command fails and is rolled back.
func (rp *Repairs) resume(id workitem.CaseID, r *resumption) (workitem.CaseID, error) {
	top, err := resumable(rp.tree, id)
	if err != nil {
		return id, err
	}
	rp.agenda.push(rp.resumeCase(top.ID, r))
	if err := rp.agenda.run(0); err != nil {
		return id, err
	}
	if len(r.input) > 0 && r.given != 1 {
		return id, fmt.Errorf("%w: the input is for the one failed work item of case %s, and there are %d; retry one of them with it",
			workflow.ErrBadCommand, top.ID, r.given)
	}
	return top.ID, checkProgress(rp.tree, top.ID)
}

// resumable returns the topmost case that failed with the given one, or an error if it cannot be resumed.
func resumable(tree *state.Tree, id workitem.CaseID) (*state.Case, error) {
	top := tree.Case(id)
	if top == nil {
		return nil, fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	for up := tree.Case(top.Parent); up != nil && up.State.Final(); up = tree.Case(top.Parent) {
		top = up
	}
	switch {
	case !top.State.Final():
		if above, s := tree.SuspendedBy(top); s != nil {
			return nil, fmt.Errorf("case %s cannot be resumed by itself: case %s above it %w%s; resume that",
				top.ID, above.ID, workflow.ErrSuspended, suspendedBecause(s))
		}
		return nil, fmt.Errorf("case %s cannot be resumed: it is not suspended, and it %w; it is %s", top.ID, workflow.ErrNotFailed, top.State)
	case top.State != state.CaseFailed:
		return nil, fmt.Errorf("case %s cannot be resumed: it %w; it is %s. Restart it as a fresh case", top.ID, workflow.ErrNotFailed,
			top.State)
	case !top.Caller.IsZero():
		return nil, fmt.Errorf("case %s cannot be resumed: the step that ran it %w, and no longer waits for it", top.ID,
			activities.ErrInactive)
	}
	if parent := tree.Case(top.Parent); parent != nil {
		t, _ := parent.Net.TaskByName(top.ParentTask)
		if err := mustBeActive(parent, t, top.Generation); err != nil {
			return nil, fmt.Errorf("case %s cannot be resumed: %w", top.ID, err)
		}
	}
	return top, nil
}

// What Resume opens of a case that failed as its task pay did:
//
//	pay      failed                      a fresh item, the next attempt, linked to the failed one
//	pack     canceled for that failure   a fresh item: nothing was wrong with it
//	notes    canceled by a person        as it is, for it was meant
//	check    completed                   as it is: what is done stays done
//	ship     a child case, failed        continues in the same way, one level down
//	bill     not enabled                 enabled if its tokens are there now
//
// The timers of tasks start again from now, since they were canceled with the case.

// resumeCase continues one case, with what its failure ended.
func (rp *Repairs) resumeCase(id workitem.CaseID, r *resumption) step {
	return func() error {
		c := rp.tree.Case(id)
		if _, err := rp.definitions.of(c); err != nil {
			return err
		}
		if err := mayResume(c); err != nil {
			return err
		}
		if err := rp.keys.mayHold(c, rp.recorded.canWait()); err != nil {
			return fmt.Errorf("case %s cannot be resumed: %w", id, err)
		}
		before := c.ItemState()
		if err := rp.emit(&state.CaseResumed{Case: id, At: rp.now}); err != nil {
			return err
		}
		if err := rp.cancelHandlerCalls(id); err != nil {
			return err
		}
		c = rp.tree.Case(id)
		if err := rp.incidents.resolve(c.Parent, func(j *state.Job) bool { return j.Name == state.IncidentCase && ofCase(j) == id }); err != nil {
			return err
		}
		steps := []step{rp.cases.childMoved(id, before, c.ItemState(), false)}
		for t := range c.Tasks {
			task := &c.Tasks[t]
			if !task.Resumable() {
				continue
			}
			steps = append(steps, rp.refill(id, net.TaskID(t), task.Generation, task.State == state.TaskFailed, r))
			err := rp.emit(&state.TaskResumed{Case: id, Task: net.TaskID(t), Generation: task.Generation})
			if err != nil {
				return err
			}
			rp.joins.touchBusy(c, net.TaskID(t))
		}
		for t := range c.Tasks {
			steps = append(steps, rp.activations.try(id, net.TaskID(t)))
		}
		rp.agenda.push(append(steps, rp.activations.endCheck(id))...)
		return nil
	}
}

// mayResume returns an error for a case that failed between two activations: a task had completed, and its tokens were
// never produced.
func mayResume(c *state.Case) error {
	begun := false
	for t := range c.Tasks {
		if c.Tasks[t].Resumable() {
			return nil
		}
		begun = begun || c.Tasks[t].Generation > 0
	}
	if !begun || isLost(c.Failure) || c.Marking[c.Net.End()] > 0 {
		return nil
	}
	return fmt.Errorf("case %s cannot be resumed: %w, since a task had completed whose tokens were never put out (%s). Restart it as "+
		"a fresh case", c.ID, workflow.ErrDeadEnd, c.Failure)
}

// cancelHandlerCalls cancels calls of completion handlers that were not made: the case has not ended after all.
func (rp *Repairs) cancelHandlerCalls(id workitem.CaseID) error {
	c := rp.tree.Case(id)
	d, err := rp.definitions.of(c)
	if err != nil {
		return err
	}
	var calls []*state.Job
	for j := range c.Jobs.All() {
		called := j
		if about, err := state.SubjectOf(j); err == nil && isIncident(j) && about.Job != nil { // a call that was given up
			called = &state.Job{Kind: about.Job.Kind, Name: about.Job.Name, Task: j.Task}
		}
		if called.Kind == state.JobHandler || called.Kind == state.JobCall && called.Task == "" && d.Handlers[called.Name] != nil {
			calls = append(calls, j)
		}
	}
	return rp.jobs.cancel(id, calls)
}

// refill opens again what an activation lost: its items or child cases, and its timers, which count from now. An
// activation that failed before it had any gets those of its definition.
func (rp *Repairs) refill(id workitem.CaseID, t net.TaskID, generation int, failed bool, r *resumption) step {
	return func() error {
		c := rp.tree.Case(id)
		spec, err := rp.definitions.task(c, t)
		if err != nil {
			return err
		}
		timers := rp.activations.startTimers(id, t, generation, spec)
		switch {
		case c.Tasks[t].Created == 0:
			rp.agenda.push(rp.activations.populate(id, t, generation, spec), timers, rp.agenda.release)
			return nil
		case c.Net.Task(t).Kind == net.Composite:
			rp.agenda.push(append(rp.lostCases(c, t, generation, failed, r), rp.refillEmpty(id, t, generation, failed, spec), timers, rp.agenda.release)...)
			return nil
		}
		rp.agenda.push(timers, rp.refillEmpty(id, t, generation, failed, spec), rp.agenda.release)
		for _, it := range c.Items.Slice() {
			if it.Task != c.Net.TaskName(t) || it.Generation != generation || !it.Successor.IsZero() {
				continue
			}
			if failed && it.State == workitem.Failed || it.State == workitem.Canceled && isLost(it.Failure) {
				if err := rp.succeed(id, t, it, r); err != nil {
					return err
				}
			} else if it.State == workitem.Failed { // an incident, if its policy kept the task active
				rp.agenda.push(rp.items.judgeItem(id, t, generation, it.ID, it.State))
			}
		}
		return nil
	}
}

// refillEmpty opens the items or child cases of the definition for an activation that failed although none of them
// failed: so many were canceled that its policy failed it. Those that a person canceled stay canceled, and without
// others the activation could not end.
func (rp *Repairs) refillEmpty(id workitem.CaseID, t net.TaskID, generation int, failed bool, spec *workflow.Task) step {
	return func() error {
		c := rp.tree.Case(id)
		if !failed || mustBeActive(c, t, generation) != nil {
			return nil
		}
		if tallyOf(rp.tree, c, t, generation).Live() > 0 {
			return nil
		}
		rp.agenda.push(rp.activations.populate(id, t, generation, spec))
		return nil
	}
}

// lostCases resumes the child cases of an activation that the failure ended, oldest first.
func (rp *Repairs) lostCases(c *state.Case, t net.TaskID, generation int, failed bool, r *resumption) []step {
	var steps []step
	for child := range rp.tree.Children(c.ID, c.Net.TaskName(t), generation) {
		if failed && child.State == state.CaseFailed || child.State == state.CaseCanceled && isLost(child.Failure) {
			steps = append(steps, rp.resumeCase(child.ID, r))
		} else if child.State == state.CaseFailed { // an incident, if its policy kept the task active
			steps = append(steps, rp.activations.judgeChild(child.ID, c.ID, t, child.ItemState()))
		}
	}
	slices.Reverse(steps)
	return steps
}

// succeed opens a new item for one that has ended: the next attempt, linked to it, which takes over the completed steps
// of its run. It is due at the same time as the old one was.
func (rp *Repairs) succeed(id workitem.CaseID, t net.TaskID, it *workitem.Item, r *resumption) error {
	n := activities.NewItem{Input: r.inputOf(it), Predecessor: it, Queue: it.Queue, Priority: it.Priority, KeepSteps: true}
	if it.Due.After(rp.now) {
		n.After = it.Due.Sub(rp.now)
	}
	if r.policy != nil && r.forItem(it) {
		var err error
		if n.Retry, err = rp.retryOf(rp.tree.Case(id), it, r.policy, it.Attempt); err != nil {
			return err
		}
	}
	_, err := rp.items.open(id, t, it.Generation, n)
	return err
}

// checkProgress returns an error for a case in which nothing can happen.
func checkProgress(tree *state.Tree, id workitem.CaseID) error {
	c := tree.Case(id)
	if c.State.Final() || len(attached(c)) > 0 {
		return nil
	}
	for t := range c.Tasks {
		if c.Tasks[t].State.Active() {
			return nil
		}
	}
	return fmt.Errorf("case %s cannot go on: %w, since none of its tasks is enabled or started", id, workflow.ErrDeadEnd)
}
