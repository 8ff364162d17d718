package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// A root case is removed by an entry of the journal, as everything else is done. From then on nothing finds it, and when
// the tables are written next, its rows go, and with them its part of the journal: all in the transaction that notes how
// far the tables are. So a crash finds either the entry and the rows, or nothing.

// remove notes that a tree is gone, and forgets what the window holds of it. The cases go last: by them items, steps and messages are
// known to be of the tree.
//
// What the window still has of the tree must not be written: its rows would come back after they were deleted, with no
// journal behind them.
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

// gone reports whether a root case was removed, but is still in the tables.
func (tx *transaction) gone(root workitem.CaseID) bool {
	if _, ok := tx.s.window.removed[root]; ok {
		return true
	}
	return tx.appended.Removed(root)
}

func removed(root workitem.CaseID) error {
	return fmt.Errorf("case %s was removed: %w", root, store.ErrNotFound)
}

// these are the values of the list that is bound, as JSON: one statement deletes for all that is removed.
const these = "(SELECT value FROM json_each(?1))"

// chains lists the entries of root cases from the newest, which are bound, to the first.
const chains = "WITH RECURSIVE chain(seq) AS (SELECT value FROM json_each(?1) " +
	"UNION ALL SELECT j.prev FROM chain CROSS JOIN main.journal j ON j.seq = chain.seq WHERE j.prev > 0) "

// trees lists, as JSON, the cases that the tables have of the removed trees.
//
// Children are found by cases_children, one look for each root. The list is made once, since several statements delete by
// it, and after the cases are gone nothing could make it again.
func (w *window) trees(c *conn) (string, error) {
	roots, err := json.Marshal(sorted(w.removed))
	if err != nil {
		return "", err
	}
	ids := []string{}
	err = c.each("SELECT id FROM main.cases WHERE id IN "+these+
		" UNION ALL SELECT c.id FROM json_each(?1) r CROSS JOIN main.cases c ON c.root = r.value AND c.parent IS NOT NULL",
		args(string(roots)), func(r *tables.Row) error {
			ids = append(ids, r.Text())
			return r.Err
		})
	if err != nil {
		return "", err
	}
	all, err := json.Marshal(ids)
	return string(all), err
}

// erase deletes what the tables and the journal have of the removed trees, and takes it out of the counts.
//
// Each goes before what leads to it: the counts are taken of rows that are still there, steps are found by the items and jobs that own
// them, these by their cases, the keys by the entries that hold them. An entry leads to the one before it in its chain, so all entries
// of a chain are found before the first is deleted. A key is deleted with its position, as it may be another command's since.
func (w *window) erase(c *conn, counts *tally) error {
	if len(w.removed) == 0 {
		return nil
	}
	cases, err := w.trees(c)
	if err != nil {
		return err
	}
	if err := counts.erase(cases); err != nil {
		return err
	}
	newest, err := json.Marshal(slices.Sorted(maps.Values(w.removed)))
	if err != nil {
		return err
	}
	return errors.Join(
		c.run("DELETE FROM steps WHERE owner IN (SELECT id FROM work_items WHERE case_id IN "+these+
			" UNION ALL SELECT id FROM jobs WHERE case_id IN "+these+")", cases),
		c.run("DELETE FROM messages WHERE case_id IN "+these, cases),
		c.run("DELETE FROM work_items WHERE case_id IN "+these, cases),
		c.run("DELETE FROM jobs WHERE case_id IN "+these, cases),
		c.run("DELETE FROM cases WHERE id IN "+these, cases),
		c.run(chains+"DELETE FROM idempotency_keys WHERE (key, seq) IN ("+
			"SELECT key, seq FROM journal WHERE seq IN chain AND key IS NOT NULL)", string(newest)),
		c.run(chains+"DELETE FROM journal WHERE seq IN chain", string(newest)),
	)
}

// erase takes the rows of cases out of the counts.
//
// By the tables and not by the window: what the window has of the tree was never counted.
func (t *tally) erase(cases string) error {
	for what, query := range map[string]string{
		"case": "SELECT workflow, '', state, count(*) FROM main.cases WHERE id IN " + these + " GROUP BY 1, 3",
		"item": "SELECT c.workflow, i.task, i.state, count(*) FROM main.work_items i JOIN main.cases c ON c.id = i.case_id " +
			"WHERE i.case_id IN " + these + " GROUP BY 1, 2, 3",
		"job": "SELECT c.workflow, j.task, j.state, count(*) FROM main.jobs j JOIN main.cases c ON c.id = j.case_id " +
			"WHERE j.case_id IN " + these + " GROUP BY 1, 2, 3",
	} {
		err := t.c.each(query, args(cases), func(r *tables.Row) error {
			t.n[store.Count{What: what, Workflow: r.Text(), Task: r.Text(), State: r.Text()}] -= r.Number()
			return r.Err
		})
		if err != nil {
			return err
		}
	}
	for query, read := range map[string]func(*tables.Row) (store.Ended, bool, error){
		"SELECT workflow, state, created, ended FROM main.cases WHERE id IN " + these: tables.ReadEndedCase,
		"SELECT c.workflow, i.task, i.state, i.started, i.ended FROM main.work_items i JOIN main.cases c ON c.id = i.case_id " +
			"WHERE i.case_id IN " + these: tables.ReadEndedItem,
	} {
		err := t.c.each(query, args(cases), func(r *tables.Row) error {
			kind, ok, err := read(r)
			if ok {
				t.ended[kind]--
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hide is erase for a reader, which changes nothing: it lists the cases that the views over the tables leave out. Those that
// the tables do not have yet are in the journal.
func (w *window) hide(c *conn, counts *tally) error {
	if len(w.removed) == 0 {
		return nil
	}
	cases, err := w.trees(c)
	if err != nil {
		return err
	}
	roots, err := json.Marshal(sorted(w.removed))
	if err != nil {
		return err
	}
	into := "INSERT OR IGNORE INTO temp." + overlayPrefix + "removed SELECT value FROM json_each(?1)"
	return errors.Join(counts.erase(cases), c.run(into, cases), c.run(into, string(roots)))
}
