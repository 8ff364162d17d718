package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The conditions of the partial indexes.
const (
	// The server uses a partial index for a query whose conditions imply that of the index. It recognizes this
	// reliably only if the text is the same.
	liveItem = "state IN ('initialized', 'started')"
	liveJob  = "state IN ('pending', 'running', 'waiting')"
	liveStep = "state = 'waiting'"
	unread   = "taken IS NULL"
)

// loadTree reads a tree. A case that is newer in memory than in the tables is taken from memory as a whole, with its
// items, jobs and children.
//
// A root case 1 with the child cases 2 and 3; this transaction has changed 3, and opened 4 below it:
//
//	cases of root 1     1, 2, and 3 as it was        appended    3, 4
//	tree                1    its row, and what loadHeld finds for it
//	                    2    the same
//	                    3    from memory, with its items and jobs; it lists 4 as its child
//	                    4    from memory
//
// Whatever the size of the tree, this takes five queries, each by a key that begins with the root. They do not share a
// snapshot. The commit compares the end of the journal with that of the row of case 1, which is read first: if a later
// query has read something newer, the commit is stale.
func loadTree(
	c *conn, nets *tables.Nets, root workitem.CaseID, newer func(workitem.CaseID) *state.Case,
) (*state.Tree, error) {
	stored, err := loadCases(c, nets, oneRoot(root))
	if err != nil {
		return nil, err
	}
	byID := make(map[workitem.CaseID]*state.Case, len(stored))
	old := make(map[workitem.CaseID]bool, len(stored)) // those whose children are in the tables
	for _, k := range stored {
		if now := newer(k.ID); now != nil {
			byID[k.ID] = now
		} else {
			byID[k.ID], old[k.ID] = k, true
		}
	}
	for _, k := range stored { // in the order of creation
		if old[k.Parent] {
			parent := byID[k.Parent]
			parent.Children = append(parent.Children, k.ID)
		}
	}
	first := byID[root]
	if first == nil {
		first = newer(root)
	}
	if first == nil {
		return nil, fmt.Errorf("root case %s: %w", root, store.ErrNotFound)
	}
	if !first.Parent.IsZero() {
		return nil, fmt.Errorf("case %s is a child case, and the root case is %s: %w", root, first.Root, store.ErrNotFound)
	}
	return tables.Assemble(first, byID, newer)
}

// loadTrees reads the trees of root cases from the tables, in their order.
// It is for readers, so no case is newer in memory.
func loadTrees(c *conn, nets *tables.Nets, roots []workitem.CaseID) ([]*state.Tree, error) {
	stored, err := loadCases(c, nets, someRoots(roots))
	if err != nil {
		return nil, err
	}
	return tables.AssembleAll(roots, stored)
}

// ofRoots selects the rows of root cases: a condition that follows the column with the id of the root case, and the
// argument for its $1.
type ofRoots struct {
	is  string
	arg any
}

func oneRoot(root workitem.CaseID) ofRoots { return ofRoots{" = $1", uuid(root)} }

func someRoots(roots []workitem.CaseID) ofRoots { return ofRoots{" = ANY($1)", uuids(roots)} }

// loadCases reads all cases of root cases, oldest first, with what they hold in memory except for their children.
// Rows of all root cases are read by one statement for each kind, and assigned to their cases in memory.
func loadCases(c *conn, nets *tables.Nets, of ofRoots) ([]*state.Case, error) {
	var all []*state.Case
	err := c.each("SELECT "+tables.Cases.List("")+" FROM @.cases WHERE root"+of.is+" ORDER BY id", []any{of.arg},
		func(r *tables.Row) error {
			k, err := readCase(r, c, nets)
			all = append(all, k)
			return err
		})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all, loadHeld(c, of, all)
}

func readCase(r *tables.Row, c *conn, nets *tables.Nets) (*state.Case, error) {
	return tables.ReadCase(r, func(fingerprint string) (*net.Net, error) { return nets.Get(c, fingerprint) })
}

// loadHeld reads the items of each task's latest activation, the live jobs, the waiting steps and the mail. Items of
// older activations are never live.
func loadHeld(c *conn, roots ofRoots, cases []*state.Case) error {
	held, key := tables.NewHeld(cases), []any{roots.arg}
	of := func(t tables.Table, condition string) string {
		return "SELECT " + t.List("") + " FROM @." + t.Name + " WHERE root" + roots.is + " AND " + condition + " ORDER BY id"
	}
	// A task in a loop has items of each activation; those of all but the latest have ended and are not read.
	latestCases, latestTasks, latest := latestActivations(cases)
	for _, kind := range []struct {
		query string
		args  []any
		read  func(*tables.Row) error
	}{
		{"SELECT " + tables.Items.List("i.") + " FROM @.work_items i JOIN unnest($2::uuid[], $3::text[], $4::bigint[]) " +
			"t(case_id, task, generation) ON i.case_id = t.case_id AND i.task = t.task AND i.generation = t.generation " +
			"WHERE i.root" + roots.is + " ORDER BY i.id", []any{roots.arg, latestCases, latestTasks, latest}, held.Item},
		{of(tables.Jobs, liveJob), key, held.Job},
		{of(tables.Steps, liveStep), key, held.Step},
		{of(tables.Messages, unread), key, held.Message},
	} {
		if err := c.each(kind.query, kind.args, kind.read); err != nil {
			return err
		}
	}
	held.Load(cases)
	return nil
}

// latestActivations lists the activations that may have items.
// The three lists are the columns of one table of activations, which the query joins: see unnest in loadHeld.
func latestActivations(cases []*state.Case) (ids []pgtype.UUID, names []string, generations []int64) {
	ids, names, generations = []pgtype.UUID{}, []string{}, []int64{}
	for _, c := range cases {
		for task, generation := range tables.LatestActivations(c) {
			ids = append(ids, pgtype.UUID{Bytes: c.ID, Valid: true})
			names = append(names, task)
			generations = append(generations, int64(generation))
		}
	}
	return ids, names, generations
}

// findRoot finds the root case of a case, item or job in the tables.
// An id is in one of the three tables. LIMIT 1 ends the search at the first row, and the tables are listed by how
// often commands name what is in them.
func findRoot(c *conn, any16 [16]byte) (workitem.CaseID, error) {
	var root workitem.CaseID
	if any16 == ([16]byte{}) {
		return root, fmt.Errorf("give an id that a start has returned or a list shows: %w", store.ErrNotFound)
	}
	err := c.each("SELECT root FROM @.cases WHERE id = $1 UNION ALL SELECT root FROM @.work_items WHERE id = $1 "+
		"UNION ALL SELECT root FROM @.jobs WHERE id = $1 LIMIT 1", []any{any16}, func(r *tables.Row) error {
		root = tables.ID[workitem.CaseID](r)
		return r.Err
	})
	if err == nil && root.IsZero() {
		err = fmt.Errorf("no case, work item or job has the id %v: %w", workitem.ID(any16), store.ErrNotFound)
	}
	return root, err
}

// ownedSteps reads the steps of an owner, oldest first.
// These are all steps, with those that have ended, from which a function continues.
func ownedSteps(c *conn, owner [16]byte) ([]*workitem.Step, error) {
	return listOf(c, "SELECT "+tables.Steps.List("")+" FROM @.steps WHERE owner = $1 ORDER BY id", []any{owner}, tables.ReadStep)
}

// findItem reads a work item.
func findItem(c *conn, id workitem.ID) (*store.ItemRow, error) {
	rows, err := queryItems(c, store.ItemFilter{ID: id})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("work item %s: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}
