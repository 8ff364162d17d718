package state

import (
	"iter"
	"slices"

	"github.com/tasq-dev/tasq/workitem"
)

// Tree is a root case with all its descendants: the unit that a command changes, completely or not at all.
//
// A command is between [Tree.Begin] and either [Tree.End] or [Tree.Rollback]. A case is copied before its first change,
// so the cost of a rollback depends only on what was changed:
//
//	Begin                  root ── A, B          saved: nothing
//	change an item of A    root ── A', B         saved: A
//	open C below A         root ── A' ── C, B    saved: A, C (was not there)
//	Rollback               root ── A, B          what was saved is put back, in any order: each case is saved once
//
// A tree is used by one goroutine at a time. Its cases can be read by others at any time: a *Case is never changed
// after its command has ended.
type Tree struct {
	Root  workitem.CaseID
	root  *Case                     // nil before it is opened
	cases map[workitem.CaseID]*Case // the others; nil if there are none, as in most trees
	saved saves                     // cases as they were at Begin

	changes // of this command
	removed bool

	owners      map[[16]byte]workitem.CaseID // of items and jobs, see holders
	ownersLimit int

	tallies map[siblings]*workitem.Tally // see ChildTally
}

// Dirty is what a command changed: the newest value of everything. It must not be modified.
type Dirty struct {
	Cases []*Case
	Was   []*Case // the values of Cases before the command; nil for a new one
	Items []*workitem.Item
	Jobs  []*Job

	Steps    []*workitem.Step
	Messages []*Message
	Removed  bool // the tree was removed, see [CaseRemoved]; the lists are irrelevant then
}

// NewTree returns a tree of the given cases, the root first. Without cases it is empty, and a [CaseOpened] fills it.
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

// Case returns a case of the tree; nil if there is none with that id. It must not be modified.
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

// drop removes a case whose opening is undone.
func (t *Tree) drop(id workitem.CaseID) {
	if id == t.Root {
		t.root = nil
	}
	delete(t.cases, id)
}

// all yields the cases in no particular order.
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

// Len returns the number of cases.
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

// each visits a case and its descendants. It skips children that the store has not loaded.
func (t *Tree) each(c *Case, f func(*Case)) {
	f(c)
	for _, id := range c.Children {
		if child := t.Case(id); child != nil {
			t.each(child, f)
		}
	}
}

// Item returns a work item in memory and its case; nil if there is none with that id. It looks in the root first, since
// most trees have no other case.
func (t *Tree) Item(id workitem.ID) (*Case, *workitem.Item) {
	if t.root != nil {
		if it := t.root.Item(id); it != nil {
			return t.root, it
		}
	}
	return t.itemBelow(id)
}

// itemBelow is Item for the cases below the root. It is a separate function because its loop moves the id to the heap,
// which Item avoids for the root.
func (t *Tree) itemBelow(id workitem.ID) (*Case, *workitem.Item) {
	for c := range t.holders(id) {
		if it := c.Item(id); it != nil {
			return c, it
		}
	}
	return nil, nil
}

// Job returns a live job and its case; nil if there is none with that id.
func (t *Tree) Job(id workitem.JobID) (*Case, *Job) {
	if t.root != nil {
		if j := t.root.Job(id); j != nil {
			return t.root, j
		}
	}
	return t.jobBelow(id)
}

// jobBelow is Job for the cases below the root; see itemBelow.
func (t *Tree) jobBelow(id workitem.JobID) (*Case, *Job) {
	for c := range t.holders(id) {
		if j := c.Job(id); j != nil {
			return c, j
		}
	}
	return nil, nil
}

// Chain returns a case and those above it that its end changes, from the bottom: the parent of whose composite task it is
// a case, and so on. A case that a step of a function started ends the chain: its end only wakes the function.
//
//	order, task ship ─▶ parcel, step "label" of a function ─▶ label        Chain(parcel): parcel, order
//	                                                                       Chain(label): label
func (t *Tree) Chain(c *Case) iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		for ; c != nil && yield(c) && c.Caller.IsZero(); c = t.Case(c.Parent) {
		}
	}
}

// SuspendedBy returns the suspension that applies to a case, and the case that has it: the case itself, or one above
// it. Both are nil if there is none.
func (t *Tree) SuspendedBy(c *Case) (*Case, *Suspension) {
	for ; c != nil; c = t.Case(c.Parent) {
		if c.Suspended != nil {
			return c, c.Suspended
		}
	}
	return nil, nil
}

// Snapshot returns the present cases of the tree, the root first, for [NewTree]. Trees that are made from it are
// independent of this one and of each other, and can be used at the same time. It must not be called within a command.
func (t *Tree) Snapshot() []*Case {
	all := make([]*Case, 0, t.Len())
	for c := range t.all() {
		n := *c
		n.Children = slices.Clip(c.Children) // the only field that is appended to in place
		all = append(all, &n)
	}
	return all
}

// Ended reports whether the root case has ended, so that nothing in the tree can change again.
func (t *Tree) Ended() bool {
	return t.root != nil && t.root.State.Final()
}

// Removed reports whether the tree was removed: it can still be read, but not be changed.
func (t *Tree) Removed() bool { return t.removed }

// Begin starts a command.
func (t *Tree) Begin() { t.reset() }

// reset drops the record of what a command has changed.
func (t *Tree) reset() {
	t.saved.reset()
	t.changes = changes{}
}

// End ends a command, and returns the newest value of everything that it changed. The root case always counts as
// changed, since it has the journal position of the whole tree.
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

// own returns a copy of a case that this command may change; nil if there is no such case. The copy shares what is
// large (items, jobs, steps, events), of which only the changed parts are copied later. The marking and the tasks are
// small arrays, and are copied completely.
func (t *Tree) own(id workitem.CaseID) *Case {
	c := t.Case(id)
	if c == nil || t.saved.has(id) {
		return c
	}
	t.saved.add(id, c)
	n := *c // Children is only appended to, beyond the length that a snapshot sees
	n.Marking = c.Marking.Clone()
	n.Tasks = slices.Clone(c.Tasks)
	n.Items = c.Items.snapshot()
	n.Jobs = c.Jobs.snapshot()
	n.Steps = c.Steps.snapshot()
	n.Mail = c.Mail.snapshot()
	t.put(&n)
	return &n
}
