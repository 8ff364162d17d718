package tables

import (
	"bytes"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Appended has the entries that a transaction has appended and the database does not have yet, in order. So rolling
// back one of several commands costs nothing unless the user's SQL ran.
type Appended []Command

// Command is an entry with the newest values of everything that it changed.
type Command struct {
	Entry      *store.Entry
	Dirty      state.Dirty
	Start, End int // of its encoded changes in the buffer that the store keeps
}

// lastOf returns the newest value with a property; nil if there is none.
func lastOf[T any](a Appended, list func(*state.Dirty) []*T, is func(*T) bool) *T {
	for i := len(a) - 1; i >= 0; i-- {
		all := list(&a[i].Dirty)
		if at := slices.IndexFunc(all, is); at >= 0 {
			return all[at]
		}
	}
	return nil
}

// Case returns a case as of the end of the transaction; nil if it was not changed.
func (a Appended) Case(id workitem.CaseID) *state.Case {
	return lastOf(a, func(d *state.Dirty) []*state.Case { return d.Cases }, func(c *state.Case) bool { return c.ID == id })
}

// Item is like Case, for a work item.
func (a Appended) Item(id workitem.ID) *workitem.Item {
	return lastOf(a, func(d *state.Dirty) []*workitem.Item { return d.Items }, func(it *workitem.Item) bool { return it.ID == id })
}

// Job is like Case, for a job.
func (a Appended) Job(id workitem.JobID) *state.Job {
	return lastOf(a, func(d *state.Dirty) []*state.Job { return d.Jobs }, func(j *state.Job) bool { return j.ID == id })
}

// Keyed lists the changed cases with a unique business key.
func (a Appended) Keyed(key string) (all []workitem.CaseID) {
	for i := range a {
		for _, c := range a[i].Dirty.Cases {
			if c.Unique && c.Key == key {
				all = append(all, c.ID)
			}
		}
	}
	return all
}

// HoldersOf lists those of the given cases that hold a business key of a workflow. If newer has no value for a case,
// the tables are up to date: it holds the key.
func HoldersOf(workflow, key string, ids []workitem.CaseID, newer func(workitem.CaseID) *state.Case) (all []workitem.CaseID) {
	for _, id := range ids {
		c := newer(id)
		holds := c == nil || c.HoldsKey() && c.Workflow == workflow && c.Key == key
		if holds && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// KeyHolders returns the conditions of a query for the cases that hold a business key according to the tables.
func KeyHolders(dialect Dialect, workflow, key string) Conditions {
	w := Conditions{Dialect: dialect}
	w.Add("workflow = ?", workflow)
	w.Add("business_key = ?", key)
	w.Plain("state IN ('started', 'completed')")
	return w
}

// Starts lists the root cases with a business key that the commands have opened.
func (a Appended) Starts() (all []*state.Case) {
	for i := range a {
		for _, change := range a[i].Entry.Changes {
			if o, ok := change.(*state.CaseOpened); ok {
				all = append(all, o.Case)
			}
		}
	}
	return all
}

// KeyStarts returns the conditions of a query for the starts of root cases with a business key.
func KeyStarts(dialect Dialect, workflow, key string, after time.Time) Conditions {
	w := Conditions{Dialect: dialect}
	w.Add("workflow = ?", workflow)
	w.Add("business_key = ?", key)
	w.Plain("parent IS NULL")
	w.AddCreated("", after.Add(time.Microsecond), time.Time{})
	return w
}

// MergeStarts adds newer cases to the stored starts of a workflow with a business key after a time, and sorts them.
func MergeStarts(stored []store.KeyStart, newer []*state.Case, workflow, key string, after time.Time) []store.KeyStart {
	for _, c := range newer {
		known := func(s store.KeyStart) bool { return s.Case == c.ID }
		if c.Workflow == workflow && c.Key == key && c.Parent.IsZero() && c.Created.After(after) && !slices.ContainsFunc(stored, known) {
			stored = append(stored, store.KeyStart{Case: c.ID, At: c.Created})
		}
	}
	slices.SortFunc(stored, store.KeyStart.Compare)
	return stored
}

// MergeSuccessors adds those of newer cases that restart or fork a case to the stored ones, and sorts them.
func MergeSuccessors(stored []workitem.CaseID, newer []*state.Case, id workitem.CaseID) []workitem.CaseID {
	for _, c := range newer {
		if c.Predecessor == id && !slices.Contains(stored, c.ID) {
			stored = append(stored, c.ID)
		}
	}
	slices.SortFunc(stored, func(a, b workitem.CaseID) int { return bytes.Compare(a[:], b[:]) })
	return stored
}

// Removed reports whether the transaction removed a root case.
func (a Appended) Removed(root workitem.CaseID) bool {
	return slices.ContainsFunc(a, func(c Command) bool { return c.Dirty.Removed && c.Entry.Root == root })
}

// Steps adds the newer steps of an owner to the stored ones, which are ordered by id.
func (a Appended) Steps(stored []*workitem.Step, owner [16]byte) []*workitem.Step {
	for i := range a {
		for _, s := range a[i].Dirty.Steps {
			if s.Owner() == owner {
				stored = PutStep(stored, s)
			}
		}
	}
	return stored
}

// PutStep inserts or replaces a step in a list that is ordered by id.
func PutStep(all []*workitem.Step, s *workitem.Step) []*workitem.Step {
	i, known := slices.BinarySearchFunc(all, s, func(a, b *workitem.Step) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	if !known {
		return slices.Insert(all, i, s)
	}
	all[i] = s
	return all
}
