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

// An entry of the journal removes a root case, as it does every other change. From then on no query finds the case.
// When the tables are written next, its rows and its entries of the journal are deleted, in the transaction that stores
// the position of the tables. So after a crash, either the entry and the rows exist, or neither.

// remove records that a tree was removed, and deletes its values from the window. The cases come last, since items,
// steps and messages are matched to the tree by them.
//
// Values of the tree must not be written after that: their rows would exist again after they were deleted, without a
// journal.
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
	// The lists by key keep the ids of removed cases. Their readers look up each case, and skip an id without one.
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

// these are the values of the bound list, as JSON: one statement deletes for all removed trees.
const these = "(SELECT value FROM json_each(?1))"

// chains lists the entries of root cases, from the newest, which are bound, to the first.
const chains = "WITH RECURSIVE chain(seq) AS (SELECT value FROM json_each(?1) " +
	"UNION ALL SELECT j.prev FROM chain CROSS JOIN main.journal j ON j.seq = chain.seq WHERE j.prev > 0) "

// trees returns, as JSON, the cases of the removed trees that are in the tables.
//
// Children are found by the index cases_children, with one lookup for each root. The list is made once, since several
// statements use it, and it can no longer be made after the cases are deleted.
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

// erase deletes the rows and journal entries of the removed trees, and subtracts them from the counts.
//
// Rows are deleted before those by which they are found: the counts read the rows, steps are found by their items and
// jobs, these by their cases, and keys by their entries. An entry leads to the previous one in its chain, so all
// entries of a chain are found before the first is deleted. A key is deleted only with its position, as another command
// may use it by now.
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

// erase subtracts the rows of cases from the counts.
//
// It reads the tables and not the window, since values of the window were never counted.
func (t *tally) erase(cases string) error {
	return errors.Join(
		t.c.each("SELECT "+tables.CountedCase+" FROM main.cases WHERE id IN "+these, args(cases), func(r *tables.Row) error {
			t.countCase(tables.ReadCountedCase(r), -1)
			return r.Err
		}),
		t.c.each("SELECT "+tables.CountedItem+", (SELECT workflow FROM main.cases WHERE id = case_id) "+
			"FROM main.work_items WHERE case_id IN "+these, args(cases), func(r *tables.Row) error {
			it := tables.ReadCountedItem(r)
			t.countItem(r.Text(), it, -1)
			return r.Err
		}),
		t.c.each("SELECT c.workflow, j.task, j.state, count(*) FROM main.jobs j JOIN main.cases c ON c.id = j.case_id "+
			"WHERE j.case_id IN "+these+" GROUP BY 1, 2, 3", args(cases), func(r *tables.Row) error {
			t.n[store.Count{What: "job", Workflow: r.Text(), Task: r.Text(), State: r.Text()}] -= r.Number()
			return r.Err
		}),
	)
}

// hide is erase for a reader, which changes no table: it lists the cases that the temporary views exclude. Cases that
// are not in the tables yet are found in the journal.
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
