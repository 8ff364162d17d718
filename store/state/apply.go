package state

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Apply applies a change to the tree. It returns an error if the change cannot follow from the present state, as in a
// corrupt journal. The tree may be half changed then; [Tree.Rollback] restores it.
//
// Apply decides nothing: the kernel has decided, for example, that a task is enabled, and the change records that.
// Apply checks only what would leave a state on which no command can run: a negative marking, or a change of something
// that does not exist. The invariants between the parts of a tree are left to the integrity check.
//
// A case is copied before its first change within a command (own), so that readers of earlier snapshots, and a
// rollback, keep the old value. Later changes modify the copy.
func (t *Tree) Apply(e Change) error {
	if o, ok := e.(*CaseOpened); ok {
		return t.openCase(o.Case)
	}
	id := e.of()
	c := t.own(id)
	if c == nil {
		return fmt.Errorf("%T names case %s, which is not there", e, id)
	}
	switch e := e.(type) {
	case *CaseBegun:
		before := c.ItemState()
		c.Begun = true
		t.recount(c, before, c.ItemState())
	// The counts of its parent are changed first, while the case still has the state that it is counted as.
	case *CaseEnded:
		t.recount(c, c.ItemState(), e.State.stands())
		c.State, c.Output, c.Failure, c.Ended, c.KeepUntil = e.State, e.Output, e.Failure, e.At, e.KeepUntil
		c.Suspended, c.Unique = nil, c.Unique && !e.FreesKey
	case *CaseResumed:
		return t.resume(c)
	case *CaseSuspended:
		return c.suspend(e)
	case *CaseContinued:
		c.Suspended = nil
	case *TaskResumed:
		return c.resumeTask(e)
	case *CaseRemoved:
		return t.remove(c)
	case *TaskMoved:
		return c.moveTask(e)
	// There is no upper bound: a net that is not sound may pile up tokens, and the kernel bounds what one command
	// does.
	case *Produced:
		for _, p := range e.Into {
			c.Marking[p]++
		}
	case *TokensMoved:
		return c.moveTokens(e)
	case *Removed:
		c.Marking[e.From] -= e.Tokens
		if c.Marking[e.From] < 0 {
			return fmt.Errorf("condition %s of case %s would hold less than no token", c.Net.ConditionName(e.From), id)
		}
	case *ItemOpened:
		return t.openItem(c, e.Item)
	case *ItemMoved:
		return t.moveItem(c, e)
	case *RetryChanged:
		return t.changeRetry(c, e)
	// It goes into the case and into the list of what the command has changed, from which the store writes its row.
	case *JobOpened:
		c.Jobs.put(e.Job)
		t.jobs.put(e.Job)
		t.noteOwner(e.Job.ID, id)
	case *JobMoved:
		return t.moveJob(c, e)
	case *StepOpened:
		t.openStep(c, e.Step)
	case *StepMoved:
		return t.moveStep(c, e)
	case *MessageSent:
		c.Mail.put(e.Message)
		t.mail.put(e.Message)
	case *MessageTaken:
		return t.takeMessage(c, e)
	}
	return nil
}

// openCase adds a copy of the case, with its first token, and counts it in its parent. The number of child cases
// created in an activation gives the next one its name (k.1.3), so it includes those that have ended. A case that a
// step runs belongs to no task, and is named by its position among all children.
func (t *Tree) openCase(given *Case) error {
	c := *given
	c.State = CaseStarted
	c.Marking = c.Net.InitialMarking()
	c.Tasks = make([]Task, c.Net.NumTasks())
	// The given case is that of the kernel, or of a decoded entry, and may have parts of another tree.
	c.Items, c.Jobs, c.Children, c.Steps, c.Mail = Items{}, Jobs{}, nil, Steps{}, Mail{}
	if c.Parent.IsZero() {
		t.Root = c.ID
	} else {
		p := t.own(c.Parent)
		if p == nil {
			return fmt.Errorf("case %s has parent %s, which is not there", c.ID, c.Parent)
		}
		if c.Caller.IsZero() {
			task, ok := p.Net.TaskByName(c.ParentTask)
			if !ok {
				return fmt.Errorf("case %s belongs to task %q, which workflow %s does not have", c.ID, c.ParentTask, p.Workflow)
			}
			p.Tasks[task].Created++
		}
		p.Children = append(p.Children, c.ID)
	}
	// Nothing is what was there before: a rollback removes the case.
	t.saved.add(c.ID, nil)
	t.put(&c)
	t.recount(&c, workitem.None, c.ItemState())
	return nil
}

// remove marks a tree whose root case has ended as removed. It must not have jobs, since their work would be lost. The
// tree stays readable until the end of the command, for observers.
func (t *Tree) remove(c *Case) error {
	if c.ID != t.Root || !c.State.Final() {
		return fmt.Errorf("case %s is removed, and it is %s; only a root case that has ended can be", c.ID, c.State)
	}
	for k := range t.all() {
		if k.Jobs.Len() > 0 {
			return fmt.Errorf("case %s is removed, and %d jobs of case %s are still to be done", c.ID, k.Jobs.Len(), k.ID)
		}
	}
	t.removed = true
	return nil
}

// resume continues a case that has failed, or that was canceled because the case above it failed.
// What it had produced by its end is taken back. The items that ended with it stay as they are; new ones replace
// them.
func (t *Tree) resume(c *Case) error {
	if c.State != CaseFailed && c.State != CaseCanceled {
		return fmt.Errorf("case %s is resumed, and it is %s; only a case that has failed can be", c.ID, c.State)
	}
	before := c.ItemState()
	c.State, c.Output, c.Failure, c.Ended, c.KeepUntil = CaseStarted, nil, nil, time.Time{}, time.Time{}
	t.recount(c, before, c.ItemState())
	return nil
}

func (c *Case) moveTokens(e *TokensMoved) error {
	for _, p := range e.From {
		if c.Marking[p]--; c.Marking[p] < 0 {
			return fmt.Errorf("condition %s of case %s would hold less than no token", c.Net.ConditionName(p), c.ID)
		}
	}
	for _, p := range e.Into {
		c.Marking[p]++
	}
	return nil
}

// A second suspension replaces the first, with its own time and reason.
func (c *Case) suspend(e *CaseSuspended) error {
	if c.State.Final() {
		return fmt.Errorf("case %s is suspended, and it is %s", c.ID, c.State)
	}
	s := e.Suspension
	c.Suspended = &s
	return nil
}

// The generation must be that of the activation that was lost: the task may have been enabled again since.
func (c *Case) resumeTask(e *TaskResumed) error {
	task := &c.Tasks[e.Task]
	if !task.Resumable() || task.Generation != e.Generation {
		return fmt.Errorf("activation %d of task %s of case %s is resumed, and the task is %s in activation %d",
			e.Generation, c.Net.TaskName(e.Task), c.ID, task.State, task.Generation)
	}
	task.State, task.Lost = TaskStarted, false
	return nil
}

// nothing is the output of an item that completed without one. It differs from nil, the output of a task without a
// completed item.
var nothing = json.RawMessage("null")

// moveTask changes the state of a task. Three transitions change more than that: enabling begins a new activation, a
// start takes the tokens that the change lists (which ones an or-join took is a decision that is not repeated here),
// and completion clears the output of an earlier activation:
//
//	activation 1   item completes with 7     task output 7
//	activation 2   its only item is canceled, the task completes without output     task output nil, not 7
func (c *Case) moveTask(e *TaskMoved) error {
	task := &c.Tasks[e.Task]
	task.State, task.Lost = e.To, e.Lost
	if e.To == TaskCompleted && c.Items.Tally(c.Net.TaskName(e.Task), e.Generation).Completed == 0 {
		task.Output = nil // of an earlier activation
	}
	if e.To == TaskEnabled {
		// Only queries need the final items of earlier activations, and they read the tables. Dropping them here keeps
		// a case small that loops ten thousand times.
		c.Items.forget(c.Net.TaskName(e.Task))
		task.Generation, task.Created = e.Generation, 0
	}
	for _, p := range e.Consumed {
		if c.Marking[p]--; c.Marking[p] < 0 {
			return fmt.Errorf("condition %s of case %s would hold less than no token", c.Net.ConditionName(p), c.ID)
		}
	}
	return nil
}

// openItem adds an item. A replacement is linked from both sides: the policy asks whether a failed item has a
// successor, and an attempt asks for its predecessor. A predecessor of an earlier activation is no longer in memory;
// its link is only in the tables.
func (t *Tree) openItem(c *Case, it *workitem.Item) error {
	task, ok := c.Net.TaskByName(it.Task)
	if !ok {
		return fmt.Errorf("item %s belongs to task %q, which workflow %s does not have", it.ID, it.Task, c.Workflow)
	}
	c.Tasks[task].Created++
	t.putItem(c, it)
	t.noteOwner(it.ID, c.ID)
	if it.Predecessor.IsZero() {
		return nil
	}
	if p := c.Items.Get(it.Predecessor); p != nil {
		n := *p
		n.Successor = it.ID
		t.putItem(c, &n)
	}
	return nil
}

func (t *Tree) putItem(c *Case, it *workitem.Item) {
	c.Items.put(it)
	t.items.put(it)
}

// moveItem changes a copy of the item, since a callback or a reader may have the old one. The output of the task is
// that of the item that completed last, which need not be the one with the highest number.
func (t *Tree) moveItem(c *Case, e *ItemMoved) error {
	it := c.Items.Get(e.Item)
	if it == nil {
		return fmt.Errorf("item %s of case %s is not there", e.Item, c.ID)
	}
	n := *it
	n.State, n.By = e.To, e.By
	switch {
	case e.To == workitem.Started:
		n.Started = e.At
	// A reset item has not started, as far as durations are concerned. An item that is not final has the zero time as
	// its end.
	case e.To == workitem.Initialized:
		n.Started = n.Ended
	case e.To.Final():
		n.Ended, n.Output, n.Failure = e.At, e.Output, e.Failure
	}
	if e.To == workitem.Completed {
		if task, ok := c.Net.TaskByName(n.Task); ok {
			c.Tasks[task].Output = e.Output
			if len(e.Output) == 0 {
				c.Tasks[task].Output = nothing
			}
		}
	}
	t.putItem(c, &n)
	return nil
}

func (t *Tree) changeRetry(c *Case, e *RetryChanged) error {
	it := c.Items.Get(e.Item)
	if it == nil || !it.State.Live() {
		return fmt.Errorf("item %s of case %s, which is given a retry policy, is not live", e.Item, c.ID)
	}
	n := *it
	n.Retry = e.Retry
	t.putItem(c, &n)
	return nil
}

// moveJob changes a copy of the job. A job that has ended is removed from the case, but kept in the changes of the
// command, so that the store can write its end.
func (t *Tree) moveJob(c *Case, e *JobMoved) error {
	j := c.Jobs.Get(e.Job)
	if j == nil {
		return fmt.Errorf("job %s of case %s is not there", e.Job, c.ID)
	}
	n := *j
	n.State, n.Due, n.Attempt, n.Crashes = e.To, e.Due, e.Attempt, e.Crashes
	n.Fence, n.Owner, n.Lease, n.Failure = e.Fence, e.Owner, e.Lease, e.Failure
	if e.To.Live() {
		c.Jobs.put(&n)
	} else {
		n.Ended = e.At
		c.Jobs.remove(&n)
	}
	t.jobs.put(&n)
	return nil
}

// openStep adds a step. A case has only waiting steps; a run reads the others from the store. So a function of ten
// thousand steps needs memory only for those that it waits for.
func (t *Tree) openStep(c *Case, s *workitem.Step) {
	if !s.State.Final() {
		c.Steps.put(s)
	}
	t.steps.put(s)
}

// A step that is not in the tree has ended, or was never opened; both cannot be moved.
func (t *Tree) moveStep(c *Case, e *StepMoved) error {
	s := c.Step(e.Step)
	if s == nil {
		return fmt.Errorf("step %s of case %s does not wait", e.Step, c.ID)
	}
	n := e.Move(s)
	if n.State.Final() {
		c.Steps.remove(sortKey{n.ID})
	} else {
		c.Steps.put(n)
	}
	t.steps.put(n)
	return nil
}

// Move returns the step after the change; the given one is not changed.
func (e *StepMoved) Move(s *workitem.Step) *workitem.Step {
	n := *s
	n.State, n.Attempt, n.Due, n.Failure = e.To, e.Attempt, e.Due, e.Failure
	// A change without a result keeps that of the step, as a used token keeps its text. A step that waits for a limit
	// has there what it needs of it, which ends with the wait.
	if e.Result != nil || s.Limited() {
		n.Result = e.Result
	}
	if e.To.Final() {
		n.Ended = e.At
	}
	return &n
}

// takeMessage records that a step took an event. It is an error if the event was taken before.
func (t *Tree) takeMessage(c *Case, e *MessageTaken) error {
	m := c.Mail.get(sortKey{e.Message})
	if m == nil {
		return fmt.Errorf("event %s of case %s was taken before, or never sent", e.Message, c.ID)
	}
	n := *m
	n.Step, n.Taken = e.Step, e.At
	c.Mail.remove(sortKey{n.ID})
	t.mail.put(&n)
	return nil
}
