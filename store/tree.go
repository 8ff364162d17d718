package store

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// Tree is a root case and all its descendants: what one command may change, all or nothing.
//
// A command is bracketed by [Tree.Begin] and either [Tree.End] or [Tree.Rollback]. Between them a case is copied
// before its first change, so a rollback costs what was changed and nothing else.
type Tree struct {
	Root  workitem.CaseID
	root  *Case                     // nil before it was opened
	cases map[workitem.CaseID]*Case // the others; nil as long as there are none, as in most trees
	saved saves                     // as they were at Begin

	changes // by this command
	removed bool

	owners      map[[16]byte]workitem.CaseID // of items and jobs, see holders
	ownersLimit int

	broods map[brood]*workitem.Tally // see Children
}

// Dirty lists what a command changed: the newest value of each. Nothing in it may be changed.
type Dirty struct {
	Cases []*Case
	Items []*workitem.Item
	Jobs  []*Job

	Steps    []*workitem.Step
	Messages []*Message
	Removed  bool // the tree is to be forgotten, see [CaseRemoved]; the lists do not matter then
}

// NewTree returns a tree of the given cases, the root first; a tree that a [CaseOpened] will fill may be empty.
func NewTree(cases ...*Case) *Tree {
	t := new(Tree)
	if len(cases) > 0 {
		t.Root = cases[0].ID
	}
	for _, c := range cases {
		t.put(c)
	}
	return t
}

// Case finds a case of the tree; nil if it is not there. It must not be changed.
func (t *Tree) Case(id workitem.CaseID) *Case {
	if id == t.Root {
		return t.root
	}
	return t.cases[id]
}

// put adds a case, or replaces the one with its id.
func (t *Tree) put(c *Case) {
	if c.ID == t.Root {
		t.root = c
		return
	}
	if t.cases == nil {
		t.cases = make(map[workitem.CaseID]*Case)
	}
	t.cases[c.ID] = c
}

func (t *Tree) drop(id workitem.CaseID) {
	if id == t.Root {
		t.root = nil
	}
	delete(t.cases, id)
}

// all lists the cases in no particular order.
func (t *Tree) all() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		if t.root != nil && !yield(t.root) {
			return
		}
		for _, c := range t.cases {
			if !yield(c) {
				return
			}
		}
	}
}

// Len counts the cases of the tree.
func (t *Tree) Len() int {
	if t.root == nil {
		return len(t.cases)
	}
	return len(t.cases) + 1
}

// Each calls f with every case, a parent before its children, siblings in the order of their creation.
func (t *Tree) Each(f func(*Case)) {
	if t.root != nil {
		t.each(t.root, f)
	}
}

func (t *Tree) each(c *Case, f func(*Case)) {
	f(c)
	for _, id := range c.Children {
		if child := t.Case(id); child != nil {
			t.each(child, f)
		}
	}
}

// Item finds a work item and its case in memory; nil if it is not there.
func (t *Tree) Item(id workitem.ID) (*Case, *workitem.Item) {
	if t.root != nil {
		if it := t.root.Item(id); it != nil {
			return t.root, it
		}
	}
	for c := range t.holders(id) {
		if it := c.Item(id); it != nil {
			return c, it
		}
	}
	return nil, nil
}

// Job finds a live job and its case; nil if it is not there.
func (t *Tree) Job(id workitem.JobID) (*Case, *Job) {
	if t.root != nil {
		if j := t.root.Job(id); j != nil {
			return t.root, j
		}
	}
	for c := range t.holders(id) {
		if j := c.Job(id); j != nil {
			return c, j
		}
	}
	return nil, nil
}

// Ended reports whether the root case has ended, so that nothing of the tree can change again.
func (t *Tree) Ended() bool {
	return t.root != nil && t.root.State.Final()
}

// Begin starts a command.
func (t *Tree) Begin() { t.reset() }

func (t *Tree) reset() {
	t.saved.reset()
	t.changes = changes{}
}

// End ends a command and returns the newest value of all that it changed. The root case always counts as changed, since
// it carries the journal position of the whole tree.
func (t *Tree) End(seq int64) Dirty {
	if root := t.own(t.Root); root != nil {
		root.LastSeq = seq
	}
	d := Dirty{Items: t.items.list, Jobs: t.jobs.list, Steps: t.steps.list, Messages: t.mail.list, Removed: t.removed}
	d.Cases = make([]*Case, 0, len(t.saved.list))
	for _, s := range t.saved.list {
		if c := t.Case(s.id); c != nil {
			d.Cases = append(d.Cases, c)
		}
	}
	t.reset()
	return d
}

// Rollback undoes everything since Begin.
func (t *Tree) Rollback() {
	t.restore()
	t.reset()
	t.removed = false
}

// own returns a copy of the case that this command may change; nil if the case is not there.
func (t *Tree) own(id workitem.CaseID) *Case {
	c := t.Case(id)
	if c == nil || t.saved.has(id) {
		return c
	}
	t.saved.add(id, c)
	n := *c
	n.Marking = c.Marking.Clone()
	n.Tasks = slices.Clone(c.Tasks)
	n.Items = c.Items.snapshot()
	n.Jobs = c.Jobs.snapshot()
	n.Children = slices.Clip(c.Children)
	n.Steps = c.Steps.snapshot()
	n.Mail = c.Mail.snapshot()
	t.put(&n)
	return &n
}

// Apply changes the tree as the event says. It refuses, without a change, what cannot follow from the present state: a
// corrupt journal.
func (t *Tree) Apply(e Event) error {
	if o, ok := e.(*CaseOpened); ok {
		return t.openCase(o.Case)
	}
	id := caseOf(e)
	c := t.own(id)
	if c == nil {
		return fmt.Errorf("%T names case %s, which is not there", e, id)
	}
	switch e := e.(type) {
	case *CaseBegun:
		before := c.Stands()
		c.Begun = true
		t.recount(c, before, c.Stands())
	case *CaseEnded:
		t.recount(c, c.Stands(), e.State.stands())
		c.State, c.Output, c.Failure, c.Ended, c.KeepUntil = e.State, e.Output, e.Failure, e.At, e.KeepUntil
	case *CaseRemoved:
		return t.remove(c)
	case *TaskMoved:
		return c.moveTask(e)
	case *Produced:
		for _, p := range e.Into {
			c.Marking[p]++
		}
	case *Removed:
		c.Marking[e.From] -= e.Tokens
		if c.Marking[e.From] < 0 {
			return fmt.Errorf("condition %s of case %s would hold less than no token", c.Net.ConditionName(e.From), id)
		}
	case *ItemOpened:
		return t.openItem(c, e.Item)
	case *ItemMoved:
		return t.moveItem(c, e)
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

func caseOf(e Event) workitem.CaseID {
	switch e := e.(type) {
	case *CaseOpened:
		return e.Case.ID
	case *CaseBegun:
		return e.Case
	case *CaseEnded:
		return e.Case
	case *CaseRemoved:
		return e.Case
	case *TaskMoved:
		return e.Case
	case *Produced:
		return e.Case
	case *Removed:
		return e.Case
	case *ItemOpened:
		return e.Item.Case
	case *ItemMoved:
		return e.Case
	case *JobOpened:
		return e.Job.Case
	case *JobMoved:
		return e.Case
	case *StepOpened:
		return e.Step.Case
	case *StepMoved:
		return e.Case
	case *MessageSent:
		return e.Message.Case
	case *MessageTaken:
		return e.Case
	case *Noted:
		return e.Case
	}
	return workitem.CaseID{}
}

// openCase adds a copy of the case, with its first token, and counts it at its parent.
func (t *Tree) openCase(given *Case) error {
	c := *given
	c.State = CaseStarted
	c.Marking = c.Net.InitialMarking()
	c.Tasks = make([]Task, c.Net.NumTasks())
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
	t.saved.add(c.ID, nil)
	t.put(&c)
	t.recount(&c, workitem.None, c.Stands())
	return nil
}

func (c *Case) moveTask(e *TaskMoved) error {
	task := &c.Tasks[e.Task]
	task.State = e.To
	if e.To == TaskEnabled {
		// Nothing may ask for the final items of earlier activations but queries, which read the tables. A loop of ten
		// thousand rounds so stays small.
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
	case e.To == workitem.Initialized:
		n.Started = n.Ended
	case e.To.Final():
		n.Ended, n.Output, n.Failure = e.At, e.Output, e.Failure
	}
	if e.To == workitem.Completed {
		if task, ok := c.Net.TaskByName(n.Task); ok {
			c.Tasks[task].Output = e.Output
		}
	}
	t.putItem(c, &n)
	return nil
}

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
