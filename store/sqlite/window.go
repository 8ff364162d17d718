package sqlite

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// window has the changes of committed commands that are not in the tables yet: the newest value of each case, item,
// job, step and message. The values are immutable, so readers may share them.
//
// An item that is created, started and completed, by three commands:
//
//	journal   1 case start       2 item start    3 item complete    a row and a commit each
//	window    case at 1          case at 2       case at 3          one value each, replaced
//	          item initialized   item started    item completed
//	tables                                                          case at 3, item completed
//
// When the window is written, the tables get two rows instead of six, and their pages are written once.
//
// After a write, the window is empty, and later commands add the values that they change. A value that is not in the
// window is up to date in the tables. So while the tables lag, a query uses the value of the running transaction, else
// that of the window, else the row.
type window struct {
	commands int
	seq      int64                 // journal position of the newest command; 0 if there is none
	born     map[[16]byte]struct{} // ids without a row in the tables
	cases    map[workitem.CaseID]*state.Case
	keyed    map[string][]workitem.CaseID // by the unique business keys of the cases
	started  map[string][]workitem.CaseID // root cases that were opened, by their business keys
	items    map[workitem.ID]*workitem.Item
	jobs     map[workitem.JobID]*state.Job
	steps    map[workitem.StepID]*workitem.Step
	owned    map[[16]byte][]workitem.StepID // steps by their owners
	messages map[workitem.MessageID]*state.Message
	removed  map[workitem.CaseID]int64 // removed root cases, each with the position of its last entry

	successors map[workitem.CaseID][]workitem.CaseID // root cases that were opened as restarts or forks, by the cases that they follow
}

func newWindow() window {
	return window{
		born:  make(map[[16]byte]struct{}),
		cases: make(map[workitem.CaseID]*state.Case),
		keyed: make(map[string][]workitem.CaseID), started: make(map[string][]workitem.CaseID),
		items: make(map[workitem.ID]*workitem.Item),
		jobs:  make(map[workitem.JobID]*state.Job),
		steps: make(map[workitem.StepID]*workitem.Step), owned: make(map[[16]byte][]workitem.StepID),
		messages: make(map[workitem.MessageID]*state.Message),

		removed: make(map[workitem.CaseID]int64), successors: make(map[workitem.CaseID][]workitem.CaseID),
	}
}

// add adds the changes of a committed command.
//
// The events say what was created or removed; d has the changed values as of the end of the command. A value replaces
// that of an earlier command, so calls must be in the order of the journal.
func (w *window) add(seq int64, events []state.Change, d state.Dirty) {
	w.commands++
	w.seq = seq
	for _, e := range events {
		switch e := e.(type) {
		case *state.CaseOpened:
			w.born[e.Case.ID] = struct{}{}
		case *state.ItemOpened:
			w.born[e.Item.ID] = struct{}{}
		case *state.JobOpened:
			w.born[e.Job.ID] = struct{}{}
		case *state.CaseRemoved:
			w.remove(e.Case, seq)
		}
	}
	if d.Removed {
		return // the tree was removed; its values would be written again as rows
	}
	for _, c := range d.Cases {
		// Each start is recorded once, with the first value of its case: later commands change the case again.
		if _, fresh := w.born[c.ID]; fresh && w.cases[c.ID] == nil && c.Parent.IsZero() {
			w.addStart(c)
		}
		w.cases[c.ID] = c
		if c.Unique && !slices.Contains(w.keyed[c.Key], c.ID) {
			w.keyed[c.Key] = append(w.keyed[c.Key], c.ID)
		}
	}
	for _, it := range d.Items {
		w.items[it.ID] = it
	}
	for _, j := range d.Jobs {
		w.jobs[j.ID] = j
	}
	// Steps are looked up by owner and not by case, so they need a second map. A step never changes its owner.
	for _, s := range d.Steps {
		if _, known := w.steps[s.ID]; !known {
			w.owned[s.Owner()] = append(w.owned[s.Owner()], s.ID)
		}
		w.steps[s.ID] = s
	}
	for _, m := range d.Messages {
		w.messages[m.ID] = m
	}
}

// addStart records the start of a root case for those who look for it by what it has in common with others.
func (w *window) addStart(c *state.Case) {
	if c.Key != "" {
		w.started[c.Key] = append(w.started[c.Key], c.ID)
	}
	if !c.Predecessor.IsZero() {
		w.successors[c.Predecessor] = append(w.successors[c.Predecessor], c.ID)
	}
}

// The maps keep their memory: the next window has about as many values.
func (w *window) clear() {
	w.commands, w.seq = 0, 0
	clear(w.born)
	clear(w.cases)
	clear(w.keyed)
	clear(w.started)
	clear(w.successors)
	clear(w.items)
	clear(w.jobs)
	clear(w.steps)
	clear(w.owned)
	clear(w.messages)
	clear(w.removed)
}

// write brings tables up to the window's position, in the open transaction. Rows are written in the order of their
// keys, so that adjacent rows share pages.
func (w *window) write(to *rowWriter) error {
	t := tally{c: to.c, born: w.born, n: make(map[store.Count]int64), ended: make(store.EndedCounts)}
	forget := w.erase
	if to.overlay {
		forget = w.hide
	}
	if err := forget(to.c, &t); err != nil {
		return err
	}
	for _, id := range sorted(w.cases) {
		c := w.cases[id]
		// The count comes before the row, since it reads the state that the row replaces. The same holds below.
		if err := errors.Join(t.addCase(c), to.writeCase(c)); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.items) {
		it := w.items[id]
		if err := errors.Join(t.addItem(w.workflow(it.Case), it), to.writeItem(it)); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.jobs) {
		j := w.jobs[id]
		if err := errors.Join(t.addJob(w.workflow(j.Case), j), to.writeJob(j)); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.steps) {
		if err := to.writeStep(w.steps[id]); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.messages) {
		if err := to.writeMessage(w.messages[id]); err != nil {
			return err
		}
	}
	// One write per kind instead of one per row. A window of two thousand commands has some ten kinds.
	for kind, n := range t.n {
		if err := to.writeCount(kind, n); err != nil {
			return err
		}
	}
	for kind, n := range t.ended {
		if n == 0 {
			continue
		}
		if err := to.writeEnded(kind, n); err != nil {
			return err
		}
	}
	return nil
}

// workflow returns the workflow of a case, which is in the window with all its changes.
func (w *window) workflow(id workitem.CaseID) string {
	if c := w.cases[id]; c != nil {
		return c.Workflow
	}
	return ""
}

// tally collects changes of the numbers of cases, items and jobs.
//
// For example, item 7 is started in the tables and completed in the window, and item 8 was created and completed in the
// window:
//
//	counts   item pack started      -1    by 7, whose row is read
//	         item pack completed    +2    by 7 and 8; 8 was born here, so no row is read
//	ended    pack, this hour        +2    and their waits +2
//
// The numbers are differences that are added to the rows of counts. To write totals, the window would have to know
// them, also after a crash.
type tally struct {
	c    *conn
	born map[[16]byte]struct{}
	n    map[store.Count]int64

	ended store.EndedCounts
}

// addItem counts an item before its row is written. If the tables have a row from an earlier window, what that was counted
// as is subtracted. An item that was created in this window was never counted, whatever its states in between, so it needs
// no query; those are the majority. The same holds for cases and jobs.
func (t *tally) addItem(workflow string, it *workitem.Item) error {
	t.countItem(workflow, it, 1)
	return t.subtract("SELECT "+tables.CountedItem+" FROM work_items WHERE id = ?", it.ID, func(r *tables.Row) {
		t.countItem(workflow, tables.ReadCountedItem(r), -1)
	})
}

func (t *tally) countItem(workflow string, it *workitem.Item, n int64) {
	t.n[store.Count{What: "item", Workflow: workflow, Task: it.Task, State: it.State.String()}] += n
	t.ended.AddItem(workflow, it, n)
}

// addCase counts a case. A failed one may be resumed, and end again.
func (t *tally) addCase(c *state.Case) error {
	t.countCase(c, 1)
	return t.subtract("SELECT "+tables.CountedCase+" FROM cases WHERE id = ?", workitem.ID(c.ID), func(r *tables.Row) {
		t.countCase(tables.ReadCountedCase(r), -1)
	})
}

func (t *tally) countCase(c *state.Case, n int64) {
	t.n[store.Count{What: "case", Workflow: c.Workflow, State: c.State.String()}] += n
	t.ended.AddCase(c, n)
}

// A job has no duration to count, so only its state before is read.
func (t *tally) addJob(workflow string, j *state.Job) error {
	kind := store.Count{What: "job", Workflow: workflow, Task: j.Task, State: j.State.String()}
	t.n[kind]++
	return t.subtract("SELECT state FROM jobs WHERE id = ?", workitem.ID(j.ID), func(r *tables.Row) {
		kind.State = r.Text()
		t.n[kind]--
	})
}

// subtract reads the row of an earlier window, if there can be one.
func (t *tally) subtract(query string, id workitem.ID, read func(*tables.Row)) error {
	if _, ok := t.born[id]; ok {
		return nil
	}
	return t.c.each(query, args(textOf(id)), func(r *tables.Row) error {
		read(r)
		return r.Err
	})
}

func sorted[K interface{ ~[16]byte }, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		x, y := [16]byte(a), [16]byte(b)
		return bytes.Compare(x[:], y[:])
	})
}
