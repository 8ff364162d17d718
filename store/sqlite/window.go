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

// window holds what committed commands changed and the tables do not show yet: the newest value of each case, item, job,
// step and message. The values are never changed once they are here, so readers of the port may share them.
//
// An item that is created, started and completed, by three commands:
//
//	journal   1 case start       2 item start    3 item complete    a row and a commit each
//	window    case at 1          case at 2       case at 3          one value each, replaced
//	          item initialized   item started    item completed
//	tables                                                          case at 3, item completed
//
// The tables get two rows when the window is written, and not six, and their pages are written once.
//
// A command that comes after a write of the window begins again with what it changes: the next window holds the case and the
// item it touches, and nothing of the others. What a window does not hold is in the tables as it is now. That is the rule by
// which everything is found while the tables lag: the value of the running transaction, else that of the window, else the
// row.
type window struct {
	commands int
	seq      int64                 // journal position of the newest command; 0 if there is none
	born     map[[16]byte]struct{} // ids of what the tables do not know at all
	cases    map[workitem.CaseID]*state.Case
	keyed    map[string][]workitem.CaseID // the cases with a unique business key, by that
	started  map[string][]workitem.CaseID // the root cases with a business key that were opened, by that
	items    map[workitem.ID]*workitem.Item
	jobs     map[workitem.JobID]*state.Job
	steps    map[workitem.StepID]*workitem.Step
	owned    map[[16]byte][]workitem.StepID // the steps, by their owners
	messages map[workitem.MessageID]*state.Message
	removed  map[workitem.CaseID]int64 // root cases that are gone, each with the position of its last entry
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

		removed: make(map[workitem.CaseID]int64),
	}
}

// add takes the changes of a command that has been committed.
//
// The changes say what was born or removed; what has changed is in d, as the values that the tree had after the command. A
// value replaces the one of an earlier command, so the order of calls is that of the journal.
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
		return // the values are of a tree that is gone: taken here, they would be written again as rows
	}
	for _, c := range d.Cases {
		// Each start once, at the first value of its case: later commands of the case bring it again.
		if _, fresh := w.born[c.ID]; fresh && w.cases[c.ID] == nil && c.Key != "" && c.Parent.IsZero() {
			w.started[c.Key] = append(w.started[c.Key], c.ID)
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
	// Steps are asked for by their owner and not by their case, so they need a second map. A step never changes its owner.
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

func (w *window) clear() {
	w.commands, w.seq = 0, 0
	clear(w.born)
	clear(w.cases)
	clear(w.keyed)
	clear(w.started)
	clear(w.items)
	clear(w.jobs)
	clear(w.steps)
	clear(w.owned)
	clear(w.messages)
	clear(w.removed)
}

// write brings tables up to the window's position, in the transaction that is open. Rows are written in the order of
// their keys, so that neighbours share pages.
func (w *window) write(to *rowWriter) error {
	t := tally{c: to.c, born: w.born, n: make(map[store.Count]int64), ended: make(map[store.Ended]int64)}
	forget := w.erase
	if to.overlay {
		forget = w.hide
	}
	if err := forget(to.c, &t); err != nil {
		return err
	}
	for _, id := range sorted(w.cases) {
		c := w.cases[id]
		// The count before the row: it asks the table for the state that is about to be replaced. The same below.
		if err := errors.Join(t.addCase(c), to.writeCase(c)); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.items) {
		it := w.items[id]
		kind := store.Count{What: "item", Workflow: w.workflow(it.Case), Task: it.Task, State: it.State.String()}
		if err := errors.Join(t.end(kind.Workflow, it), t.add("work_items", id, kind), to.writeItem(it)); err != nil {
			return err
		}
	}
	for _, id := range sorted(w.jobs) {
		j := w.jobs[id]
		kind := store.Count{What: "job", Workflow: w.workflow(j.Case), Task: j.Task, State: j.State.String()}
		if err := errors.Join(t.add("jobs", id, kind), to.writeJob(j)); err != nil {
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
	// One write a kind and not one a row. A window of two thousand commands has some ten kinds.
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

// workflow names that of a case, which is in the window with everything of it that changed.
func (w *window) workflow(id workitem.CaseID) string {
	if c := w.cases[id]; c != nil {
		return c.Workflow
	}
	return ""
}

// tally collects how the numbers of cases, items and jobs change.
//
// A worked case. The tables have item 7 as started; the window has 7 as completed, and item 8, which was born and completed
// in it:
//
//	counts   item pack started      -1    by 7, whose row is read
//	         item pack completed    +2    by 7 and 8; 8 was born here, so no row is read
//	ended    pack, this hour        +2
//
// The numbers are changes and are added to the rows of counts. To write totals, the window would have to know them, also
// after a crash.
type tally struct {
	c    *conn
	born map[[16]byte]struct{}
	n    map[store.Count]int64

	ended map[store.Ended]int64
}

// add counts a row that is about to be written. The tables know the state that one of an earlier window had: it leaves that
// count, and comes into its new one. What was born in this window was never counted, whatever states it went through, so it costs no
// look into the tables; that is most of what a window has.
func (t *tally) add(table string, id [16]byte, now store.Count) error {
	t.n[now]++
	if _, ok := t.born[id]; ok {
		return nil
	}
	return t.c.each("SELECT state FROM "+table+" WHERE id = ?", args(textOf(workitem.ID(id))), func(r *tables.Row) error {
		before := now
		before.State = r.Text()
		t.n[before]--
		return r.Err
	})
}

// addCase is add for a case, which is counted also if it has ended. A failed one may go on, and end again.
func (t *tally) addCase(c *state.Case) error {
	t.n[store.Count{What: "case", Workflow: c.Workflow, State: c.State.String()}]++
	if e, ok := store.EndedCase(c); ok {
		t.ended[e]++
	}
	if _, ok := t.born[c.ID]; ok {
		return nil
	}
	return t.c.each("SELECT workflow, state, created, ended, state FROM cases WHERE id = ?", args(textOf(c.ID)), func(r *tables.Row) error {
		before, ok, err := tables.ReadEndedCase(r)
		if ok {
			t.ended[before]--
		}
		t.n[store.Count{What: "case", Workflow: c.Workflow, State: r.Text()}]--
		return errors.Join(err, r.Err)
	})
}

// end counts an item that is about to be written if it has ended, and no more as what it was in the tables.
func (t *tally) end(workflow string, it *workitem.Item) error {
	now, ok := store.EndedOf(workflow, it)
	if !ok {
		return nil
	}
	t.ended[now]++
	if _, ok := t.born[it.ID]; ok {
		return nil
	}
	return t.c.each("SELECT '', task, state, started, ended FROM work_items WHERE id = ?", args(textOf(it.ID)), func(r *tables.Row) error {
		before, ok, err := tables.ReadEndedItem(r)
		if before.Workflow = workflow; ok {
			t.ended[before]--
		}
		return err
	})
}

func sorted[K interface{ ~[16]byte }, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		x, y := [16]byte(a), [16]byte(b)
		return bytes.Compare(x[:], y[:])
	})
}
