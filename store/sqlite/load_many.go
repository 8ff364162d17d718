package sqlite

import (
	"database/sql/driver"
	"encoding/json"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// loadTrees reads the trees of root cases from the tables, in the given order. It has one statement for each kind of
// row, while [loadTree] has one for each case.
// The ids are bound as one list in JSON, so the text of a statement does not depend on their number, and is prepared
// once.
//
//	cases       2 statements: the root cases, and their descendants
//	the rest    4 statements: items, jobs, steps, messages
func loadTrees(c *conn, nets *tables.Nets, roots []workitem.CaseID) ([]*state.Tree, error) {
	var all []*state.Case
	// The descendants are read by the index cases_children, which has no root cases: one condition for both would
	// scan the table.
	for _, where := range []string{"id IN " + bound + " AND parent IS NULL", "root IN " + bound + " AND parent IS NOT NULL"} {
		err := c.each("SELECT "+tables.Cases.List("")+" FROM cases WHERE "+where+" ORDER BY id", args(idList(roots)), func(r *tables.Row) error {
			k, err := tables.ReadCase(r, func(f string) (*net.Net, error) { return nets.Get(c, f) })
			if err == nil {
				all = append(all, k)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if err := fillAll(c, all); err != nil {
		return nil, err
	}
	return tables.AssembleAll(roots, all)
}

// fillAll reads the items of each task's latest activation, the live jobs, the waiting steps and the mail of cases.
func fillAll(c *conn, all []*state.Case) error {
	if len(all) == 0 {
		return nil
	}
	ids := make([]workitem.CaseID, len(all))
	var latest [][3]any // case, task and generation
	for i, k := range all {
		ids[i] = k.ID
		for task, generation := range tables.LatestActivations(k) {
			latest = append(latest, [3]any{k.ID.String(), task, generation})
		}
	}
	activations, err := json.Marshal(latest)
	if err != nil {
		return err
	}
	held, cases := tables.NewHeld(all), args(idList(ids))
	of := func(t tables.Table, condition string) string {
		return "SELECT " + t.List("") + " FROM " + t.Name + " WHERE case_id IN " + bound + " AND " + condition + " ORDER BY id"
	}
	for _, kind := range []struct {
		query string
		args  []driver.Value
		read  func(*tables.Row) error
	}{
		// CROSS JOIN makes the list of activations the outer loop: each is one lookup in work_items_case, whatever a
		// task in a loop has done before.
		{"SELECT " + tables.Items.List("w.") + " FROM json_each(?) t CROSS JOIN work_items w WHERE w.case_id = t.value ->> 0 AND w.task = t.value ->> 1 " +
			"AND w.generation = t.value ->> 2 ORDER BY w.id", args(string(activations)), held.Item},
		{of(tables.Jobs, liveJob), cases, held.Job},
		{of(tables.Steps, liveStep), cases, held.Step},
		{of(tables.Messages, unread), cases, held.Message},
	} {
		if err := c.each(kind.query, kind.args, kind.read); err != nil {
			return err
		}
	}
	held.Load(all)
	return nil
}
