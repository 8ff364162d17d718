package sqlite

import (
	"database/sql/driver"
	"encoding/json"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// held is what a case holds in memory.
type held struct {
	items []*workitem.Item
	jobs  []*state.Job
	steps []*workitem.Step
	mail  []*state.Message
}

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
	// Each row below is selected by the id of one of these cases, so byCase has an entry for it.
	byCase := make(map[workitem.CaseID]*held, len(all))
	ids := make([]workitem.CaseID, len(all))
	var latest [][3]any // case, task and generation
	for i, k := range all {
		ids[i], byCase[k.ID] = k.ID, new(held)
		for t := range k.Tasks {
			// A task that was never enabled, or is not atomic, has no items.
			if k.Tasks[t].Generation > 0 && k.Net.Task(net.TaskID(t)).Kind == net.Atomic {
				latest = append(latest, [3]any{k.ID.String(), k.Net.TaskName(net.TaskID(t)), k.Tasks[t].Generation})
			}
		}
	}
	activations, err := json.Marshal(latest)
	if err != nil {
		return err
	}
	cases := args(idList(ids))
	// The kinds of rows are read one after the other, and each is assigned to its case by the map. Within a case they
	// are in the order of their ids, in which a tree keeps them.
	for _, part := range []struct {
		query string
		args  []driver.Value
		read  func(*tables.Row) error
	}{
		// CROSS JOIN makes the list of activations the outer loop: each is one lookup in work_items_case, whatever a
		// task in a loop has done before.
		{"SELECT " + tables.Items.List("w.") + " FROM json_each(?) t CROSS JOIN work_items w WHERE w.case_id = t.value ->> 0 AND w.task = t.value ->> 1 " +
			"AND w.generation = t.value ->> 2 ORDER BY w.id", args(string(activations)), func(r *tables.Row) error {
			it, err := tables.ReadItem(r)
			if err == nil {
				byCase[it.Case].items = append(byCase[it.Case].items, it)
			}
			return err
		}},
		{"SELECT " + tables.Jobs.List("") + " FROM jobs WHERE case_id IN " + bound + " AND " + liveJob + " ORDER BY id", cases, func(r *tables.Row) error {
			j, err := tables.ReadJob(r)
			if err == nil {
				byCase[j.Case].jobs = append(byCase[j.Case].jobs, j)
			}
			return err
		}},
		{"SELECT " + tables.Steps.List("") + " FROM steps WHERE case_id IN " + bound + " AND " + liveStep + " ORDER BY id", cases, func(r *tables.Row) error {
			s, err := tables.ReadStep(r)
			if err == nil {
				byCase[s.Case].steps = append(byCase[s.Case].steps, s)
			}
			return err
		}},
		{"SELECT " + tables.Messages.List("") + " FROM messages WHERE case_id IN " + bound + " AND " + unread + " ORDER BY id", cases, func(r *tables.Row) error {
			m, err := tables.ReadMessage(r)
			if err == nil {
				byCase[m.Case].mail = append(byCase[m.Case].mail, m)
			}
			return err
		}},
	} {
		if err := c.each(part.query, part.args, part.read); err != nil {
			return err
		}
	}
	for _, k := range all {
		h := byCase[k.ID]
		k.Load(h.items, h.jobs)
		k.LoadWaits(h.steps, h.mail)
	}
	return nil
}
