package sqlite

import (
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// A root case is removed by an entry of the journal, as everything else is done. From then on nothing finds it, and when
// the tables are written next, its rows go, and with them its part of the journal: all in the transaction that notes how
// far the tables are. So a crash finds either the entry and the rows, or nothing.

// remove notes that a tree is gone, and forgets what the window holds of it.
func (w *window) remove(root workitem.CaseID, seq int64) {
	w.removed[root] = seq
	for id, it := range w.items {
		if c := w.cases[it.Case]; c != nil && c.Root == root {
			delete(w.items, id)
		}
	}
	for id, j := range w.jobs {
		if j.Root == root {
			delete(w.jobs, id)
		}
	}
	for id, s := range w.steps {
		if c := w.cases[s.Case]; c != nil && c.Root == root {
			delete(w.steps, id)
			delete(w.owned, s.Owner())
		}
	}
	for id, m := range w.messages {
		if c := w.cases[m.Case]; c != nil && c.Root == root {
			delete(w.messages, id)
		}
	}
	for id, c := range w.cases {
		if c.Root == root {
			delete(w.cases, id)
		}
	}
}

// gone reports whether a root case was removed and the tables still show it.
func (tx *transaction) gone(root workitem.CaseID) bool {
	if _, ok := tx.s.window.removed[root]; ok {
		return true
	}
	for i := range tx.appended {
		if a := &tx.appended[i]; a.dirty.Removed && a.entry.Root == root {
			return true
		}
	}
	return false
}

func removed(root workitem.CaseID) error {
	return fmt.Errorf("case %s was removed: %w", root, store.ErrNotFound)
}

const (
	// treeOf lists a root case, bound twice, and its descendants.
	treeOf = "SELECT id FROM main.cases WHERE id = ? " +
		"UNION ALL SELECT id FROM main.cases WHERE root = ? AND parent IS NOT NULL"
	// chainOf lists the entries of a root case from the newest, which is bound, to the first.
	chainOf = "WITH RECURSIVE chain(seq) AS (VALUES (?) " +
		"UNION ALL SELECT j.prev FROM chain CROSS JOIN journal j ON j.seq = chain.seq WHERE j.prev > 0) "
)

// erase deletes what the tables and the journal have of the removed trees, and takes it out of the counts.
func (w *window) erase(c *conn, counts *tally) error {
	for _, root := range sorted(w.removed) {
		if err := counts.erase(root); err != nil {
			return err
		}
		r, last := textOf(root), w.removed[root]
		err := errors.Join(
			c.run("DELETE FROM steps WHERE owner IN (SELECT id FROM work_items WHERE case_id IN ("+treeOf+") "+
				"UNION ALL SELECT id FROM jobs WHERE case_id IN ("+treeOf+"))", r, r, r, r),
			c.run("DELETE FROM messages WHERE case_id IN ("+treeOf+")", r, r),
			c.run("DELETE FROM work_items WHERE case_id IN ("+treeOf+")", r, r),
			c.run("DELETE FROM jobs WHERE case_id IN ("+treeOf+")", r, r),
			c.run("DELETE FROM cases WHERE root = ? AND parent IS NOT NULL", r),
			c.run("DELETE FROM cases WHERE id = ?", r),
			c.run(chainOf+"DELETE FROM idempotency_keys WHERE (key, seq) IN ("+
				"SELECT key, seq FROM journal WHERE seq IN chain AND key IS NOT NULL)", last),
			c.run(chainOf+"DELETE FROM journal WHERE seq IN chain", last),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// erase takes the rows of a tree out of the counts.
func (t *tally) erase(root workitem.CaseID) error {
	for what, query := range map[string]string{
		"case": "SELECT workflow, '', state, count(*) FROM main.cases WHERE id IN (" + treeOf + ") GROUP BY 1, 3",
		"item": "SELECT c.workflow, i.task, i.state, count(*) FROM main.work_items i JOIN main.cases c ON c.id = i.case_id " +
			"WHERE i.case_id IN (" + treeOf + ") GROUP BY 1, 2, 3",
		"job": "SELECT c.workflow, j.task, j.state, count(*) FROM main.jobs j JOIN main.cases c ON c.id = j.case_id " +
			"WHERE j.case_id IN (" + treeOf + ") GROUP BY 1, 2, 3",
	} {
		err := t.c.each(query, args(textOf(root), textOf(root)), func(r *row) error {
			t.n[store.Count{What: what, Workflow: r.text(), Task: r.text(), State: r.text()}] -= r.number()
			return r.err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hide is erase for a reader, which changes nothing: it lists the cases that the views over the tables leave out.
func (w *window) hide(c *conn, counts *tally) error {
	for _, root := range sorted(w.removed) {
		err := errors.Join(counts.erase(root),
			c.run("INSERT INTO temp."+overlayPrefix+"removed VALUES (?) ON CONFLICT DO NOTHING", textOf(root)),
			c.run("INSERT INTO temp."+overlayPrefix+"removed "+treeOf+" ON CONFLICT DO NOTHING", textOf(root), textOf(root)))
		if err != nil {
			return err
		}
	}
	return nil
}
