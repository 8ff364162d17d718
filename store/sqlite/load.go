package sqlite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The conditions of the partial indexes.
const (
	// SQLite uses a partial index only for a query that has the condition of the index. So the queries repeat these
	// texts as they are in the schema.
	liveItem = "state IN ('initialized', 'started')"
	liveJob  = "state IN ('pending', 'running', 'waiting')"
	liveStep = "state = 'waiting'"
	unread   = "taken IS NULL"
)

// loader reads trees. A case that is newer in memory than in the tables is taken from memory as a whole, with its
// items, jobs and children.
//
// A root case 1 with the child cases 2 and 3. Commands of the window have changed 3, and opened 4 below it:
//
//	tables    1, 2, and 3 as it was        window    3, 4
//	load      1    its row, items, jobs, steps, messages
//	          2    the same
//	          3    from the window, which has its items and jobs, and lists 4 as its child
//	          4    from the window
//
// A command that opens a child case also changes its parent, so a child that is only in the window has a parent in the
// window. The root case takes four queries beside its row, as do all child cases of the tables together, each by an
// index on case_id.
type loader struct {
	c     *conn
	nets  *tables.Nets
	newer func(workitem.CaseID) *state.Case
}

func loadTree(
	c *conn, nets *tables.Nets, root workitem.CaseID, newer func(workitem.CaseID) *state.Case,
) (*state.Tree, error) {
	l := loader{c: c, nets: nets, newer: newer}
	first := newer(root)
	// A root case from the window lists all its child cases; otherwise these are the rows that name it.
	fresh := first != nil
	if !fresh {
		var err error
		if first, err = l.stored(root); err != nil {
			return nil, err
		}
	}
	if !first.Parent.IsZero() {
		return nil, fmt.Errorf("case %s is a child case, and the root case is %s: %w", root, first.Root,
			store.ErrNotFound)
	}
	return l.descendants(first, fresh)
}

// stored reads a case with its items and jobs from the tables, but without its children.
// A case in the window needs no query: it has its items, jobs, steps and messages with it.
func (l *loader) stored(id workitem.CaseID) (*state.Case, error) {
	c, err := loadCase(l.c, l.nets, id)
	if err != nil {
		return nil, err
	}
	return c, l.fill(c)
}

// loadCase reads the row of a case.
func loadCase(c *conn, nets *tables.Nets, id workitem.CaseID) (*state.Case, error) {
	var found *state.Case
	err := c.each("SELECT "+tables.Cases.List("")+" FROM cases WHERE id = ?", args(textOf(id)), func(r *tables.Row) (err error) {
		found, err = tables.ReadCase(r, func(f string) (*net.Net, error) { return nets.Get(c, f) })
		return err
	})
	if err == nil && found == nil {
		err = fmt.Errorf("case %s: %w", id, store.ErrNotFound)
	}
	return found, err
}

// descendants adds the child cases of a root case to it.
// With the cases of the example above, where 1 and 2 are rows, 3 is a row and newer in the window, and 4 is only in
// the window:
//
//	all        2, 3      the rows of child cases, in the order of their creation
//	byID       1, 2      as they were read; 3 from the window
//	old        2         its items, jobs, steps and messages are read
//	stored     1, 2      their children are the rows that name them: 2 and 3 for 1
//	Assemble   4         is in no row: found by the list of children of 3
func (l *loader) descendants(root *state.Case, fresh bool) (*state.Tree, error) {
	all, err := l.children(root.ID)
	if err != nil {
		return nil, err
	}
	// A case from the window lists its children itself, and a row has no list: its children are those rows that name
	// it as their parent. Only those of rows are added below, or the children of a newer case would be listed twice.
	byID := make(map[workitem.CaseID]*state.Case, len(all)+1)
	stored := make(map[workitem.CaseID]bool, len(all)+1) // those whose children are in the tables
	byID[root.ID], stored[root.ID] = root, !fresh
	var old []*state.Case
	for _, c := range all {
		if now := l.newer(c.ID); now != nil {
			byID[c.ID] = now
			continue
		}
		old = append(old, c)
		byID[c.ID], stored[c.ID] = c, true
	}
	if err := fillAll(l.c, old); err != nil {
		return nil, err
	}
	for _, c := range all { // in the order of creation
		if stored[c.Parent] {
			parent := byID[c.Parent]
			parent.Children = append(parent.Children, c.ID)
		}
	}
	return tables.Assemble(root, byID, l.newer)
}

// children reads all descendants of a root case, oldest first, without their items and jobs.
//
// By the index cases_children, which has only child cases: most root cases have none, and then this is one lookup in a
// small index.
func (l *loader) children(root workitem.CaseID) ([]*state.Case, error) {
	var all []*state.Case
	err := l.c.each("SELECT "+tables.Cases.List("")+" FROM cases WHERE root = ? AND parent IS NOT NULL ORDER BY id",
		args(textOf(root)), func(r *tables.Row) error {
			c, err := tables.ReadCase(r, func(f string) (*net.Net, error) { return l.nets.Get(l.c, f) })
			all = append(all, c)
			return err
		})
	return all, err
}

// fill reads the items of each task's latest activation, and the live jobs. Items of older activations are never live.
func (l *loader) fill(c *state.Case) error {
	latest, err := latestActivations(c)
	if err != nil {
		return err
	}
	var items []*workitem.Item
	if latest != "" {
		// By the index work_items_case, once for each task: a query for all generations of a loop would read everything
		// that it has done so far. The inner query finds the ids in the index alone; CROSS JOIN makes the list of tasks
		// the outer loop.
		items, err = listOf(l.c, "SELECT "+tables.Items.List("")+" FROM work_items WHERE id IN ("+
			"SELECT w.id FROM json_each(?) t CROSS JOIN work_items w "+
			"WHERE w.case_id = ? AND w.task = t.key AND w.generation = t.value) ORDER BY id", args(latest, textOf(c.ID)), tables.ReadItem)
		if err != nil {
			return err
		}
	}
	// By the index jobs_live, which has no finished jobs.
	jobs, err := listOf(l.c, "SELECT "+tables.Jobs.List("")+" FROM jobs WHERE case_id = ? AND "+liveJob+" ORDER BY id", args(textOf(c.ID)), tables.ReadJob)
	if err != nil {
		return err
	}
	c.Load(items, jobs)
	return l.fillWaits(c)
}

// fillWaits reads the waiting steps of a case, and its mail.
// A step that has ended and a message that was taken are not part of a tree: no command looks at them, and a case may
// have a million of them.
func (l *loader) fillWaits(c *state.Case) error {
	of := args(textOf(c.ID))
	steps, err := listOf(l.c, "SELECT "+tables.Steps.List("")+" FROM steps WHERE case_id = ? AND "+liveStep+" ORDER BY id", of, tables.ReadStep)
	if err != nil {
		return err
	}
	mail, err := listOf(l.c, "SELECT "+tables.Messages.List("")+" FROM messages WHERE case_id = ? AND "+unread+" ORDER BY id", of, tables.ReadMessage)
	c.LoadWaits(steps, mail)
	return err
}

// ownedSteps reads the steps of an owner, oldest first.
// These are all steps, with those that have ended, from which a function continues. The owner is the item, or the job
// of a function without an item: see workitem.Step.Owner.
func ownedSteps(c *conn, owner [16]byte) ([]*workitem.Step, error) {
	return listOf(c, "SELECT "+tables.Steps.List("")+" FROM steps WHERE owner = ? ORDER BY id", args(textOf(workitem.ID(owner))), tables.ReadStep)
}

// latestActivations lists the tasks that may have items, as {"task":generation}; "" if there are none.
func latestActivations(c *state.Case) (string, error) {
	latest := maps.Collect(tables.LatestActivations(c))
	if len(latest) == 0 {
		return "", nil
	}
	text, err := json.Marshal(latest)
	return string(text), err
}

// findRoot finds the root case of a case, item or job in the tables.
//
// Ids are unique over all three tables, so the first match is the right one. Commands name cases and items much more
// often than jobs.
func findRoot(c *conn, any [16]byte) (workitem.CaseID, error) {
	var root workitem.CaseID
	if any == ([16]byte{}) {
		return root, fmt.Errorf("give an id that a start has returned or a list shows: %w", store.ErrNotFound)
	}
	key := textOf(workitem.CaseID(any))
	for _, query := range []string{
		"SELECT root FROM cases WHERE id = ?",
		"SELECT c.root FROM work_items i JOIN cases c ON c.id = i.case_id WHERE i.id = ?",
		"SELECT root FROM jobs WHERE id = ?",
	} {
		err := c.each(query, args(key), func(r *tables.Row) error {
			root = tables.ID[workitem.CaseID](r)
			return r.Err
		})
		if err != nil || !root.IsZero() {
			return root, err
		}
	}
	return root, fmt.Errorf("no case, work item or job has the id %v: %w", key, store.ErrNotFound)
}

// findItem reads a work item.
// The row of an item has no workflow; the query joins its case for it.
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

// storedEntry is a row of the journal whose events have not been decoded.
//
// Decoding needs the net of the entry's case, which is another query and so cannot run while the rows of the journal
// are read.
type storedEntry struct {
	store.Entry
	events string
}

const entryColumns = "j.seq, j.prev, j.root, j.at, j.command, j.actor, j.key, j.answer, j.events"

// The list is complete when it returns, so the connection is free for the query of a net: see storedEntry.
func readEntries(c *conn, query string, values ...any) ([]storedEntry, error) {
	var all []storedEntry
	bound := args()
	for _, v := range values {
		bound = append(bound, v)
	}
	err := c.each(query, bound, func(r *tables.Row) error {
		all = append(all, storedEntry{Entry: store.Entry{
			Seq: r.Number(), Prev: r.Number(), Root: tables.ID[workitem.CaseID](r), At: r.Time(), Command: r.Text(),
			By:  r.Text(),
			Key: r.Text(), Answer: r.JSON(),
		}, events: r.Text()})
		return r.Err
	})
	return all, err
}

// All entries of a listing share one cache of the nets of their cases.
func decodeEntries(all []storedEntry, nets *tables.EntryNets) ([]*store.Entry, error) {
	entries, roots := make([]*store.Entry, len(all)), make([]workitem.CaseID, len(all))
	for i := range all {
		roots[i] = all[i].Root
	}
	nets.Expect(roots)
	for i := range all {
		var err error
		if all[i].Changes, err = nets.Decode(all[i].Root, all[i].events); err != nil {
			return nil, fmt.Errorf("journal entry %d: %w", all[i].Seq, err)
		}
		entries[i] = &all[i].Entry
	}
	return slices.Clip(entries), nil
}

// findEntry reads one entry of the journal.
func findEntry(
	c *conn, nets *tables.Nets, seq int64, newer func(workitem.CaseID) *state.Case,
) (*store.Entry, error) {
	rows, err := readEntries(c, "SELECT "+entryColumns+" FROM journal j WHERE j.seq = ?", seq)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: journal entry %d is not there", store.ErrCorrupt, seq)
	}
	entries, err := decodeEntries(rows, tables.NewEntryNets(c, nets, newer))
	if err != nil {
		return nil, err
	}
	return entries[0], nil
}
