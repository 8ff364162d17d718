package state

import (
	"iter"
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// Tree is a root case and all its descendants: what one command may change, all or nothing.
//
// A command is bracketed by [Tree.Begin] and either [Tree.End] or [Tree.Rollback]. Between them a case is copied
// before its first change, so a rollback costs what was changed and nothing else:
//
//	Begin                  root ── A, B          saved: nothing
//	change an item of A    root ── A', B         saved: A
//	open C below A         root ── A' ── C, B    saved: A, C (was not there)
//	Rollback               root ── A, B          what was saved is put back, the latest first or not: each case is saved once
//
// A tree is used by one goroutine at a time. Its cases can be read by others for as long as they like: a *Case is never
// changed once its command has ended.
type Tree struct {
	Root  workitem.CaseID
	root  *Case                     // nil before it was opened
	cases map[workitem.CaseID]*Case // the others; nil as long as there are none, as in most trees
	saved saves                     // as they were at Begin

	changes // by this command
	removed bool

	owners      map[[16]byte]workitem.CaseID // of items and jobs, see holders
	ownersLimit int

	tallies map[siblings]*workitem.Tally // see ChildTally
}

// Dirty lists what a command changed: the newest value of each. Nothing in it may be changed.
type Dirty struct {
	Cases []*Case
	Was   []*Case // each of Cases as it was before the command; nil for a new one
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

// drop takes a case out, whose opening is undone.
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

// each goes down the tree from a case. Children that the store has not loaded are left out.
func (t *Tree) each(c *Case, f func(*Case)) {
	f(c)
	for _, id := range c.Children {
		if child := t.Case(id); child != nil {
			t.each(child, f)
		}
	}
}

// Item finds a work item and its case in memory; nil if it is not there. The root is asked first, as most trees have no
// other case.
func (t *Tree) Item(id workitem.ID) (*Case, *workitem.Item) {
	if t.root != nil {
		if it := t.root.Item(id); it != nil {
			return t.root, it
		}
	}
	return t.itemBelow(id)
}

// itemBelow is Item for the cases below the root. The loop takes the id to the heap, which the root does without.
func (t *Tree) itemBelow(id workitem.ID) (*Case, *workitem.Item) {
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
	return t.jobBelow(id)
}

// jobBelow is Job for the cases below the root, as itemBelow is Item.
func (t *Tree) jobBelow(id workitem.JobID) (*Case, *Job) {
	for c := range t.holders(id) {
		if j := c.Job(id); j != nil {
			return c, j
		}
	}
	return nil, nil
}

// SuspendedBy finds the suspension that keeps the work of a case from beginning, and the case that has it: its own, or that of a
// case above it. Both are nil if there is none.
func (t *Tree) SuspendedBy(c *Case) (*Case, *Suspension) {
	for ; c != nil; c = t.Case(c.Parent) {
		if c.Suspended != nil {
			return c, c.Suspended
		}
	}
	return nil, nil
}

// Snapshot returns the cases of the tree as they are, the root first, for [NewTree]. Trees that are made of it go on independently of this
// one and of one another, also at the same time. It must not be called within a command.
func (t *Tree) Snapshot() []*Case {
	all := make([]*Case, 0, t.Len())
	for c := range t.all() {
		n := *c
		n.Children = slices.Clip(c.Children) // the one thing that is appended to in place
		all = append(all, &n)
	}
	return all
}

// Ended reports whether the root case has ended, so that nothing of the tree can change again.
func (t *Tree) Ended() bool {
	return t.root != nil && t.root.State.Final()
}

// Removed reports whether the tree was removed: it can still be read, and nothing can be done with it any more.
func (t *Tree) Removed() bool { return t.removed }

// Begin starts a command.
func (t *Tree) Begin() { t.reset() }

// reset forgets what a command has changed, which the caller has taken or put back.
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
	both := make([]*Case, 2*len(t.saved.list))
	d.Cases, d.Was = both[:0:len(t.saved.list)], both[len(t.saved.list):][:0]
	for _, s := range t.saved.list {
		if c := t.Case(s.id); c != nil {
			d.Cases, d.Was = append(d.Cases, c), append(d.Was, s.was)
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

// own returns a copy of the case that this command may change; nil if the case is not there. The copy shares what is large
// (items, jobs, steps, events), each of which copies the parts that are changed. The marking and the tasks are small
// arrays, and are copied whole.
func (t *Tree) own(id workitem.CaseID) *Case {
	c := t.Case(id)
	if c == nil || t.saved.has(id) {
		return c
	}
	t.saved.add(id, c)
	n := *c // Children is only appended to, behind what a snapshot of it can see
	n.Marking = c.Marking.Clone()
	n.Tasks = slices.Clone(c.Tasks)
	n.Items = c.Items.snapshot()
	n.Jobs = c.Jobs.snapshot()
	n.Steps = c.Steps.snapshot()
	n.Mail = c.Mail.snapshot()
	t.put(&n)
	return &n
}
