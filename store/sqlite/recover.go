package sqlite

import (
	"fmt"
	"math"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

const projectedSeq = "SELECT value FROM meta WHERE name = 'projected_seq'"

// recover brings the tables up to the end of the journal: a crash loses at most a window of commands that were not in
// them.
//
//	journal         1 ... 90 | 91 ... 137
//	projected_seq         90 |              the window of 91 to 137 was in memory, and is gone
//
// It reads and writes one window of entries at a time, so a long journal needs no more memory than a running store. The
// position is written with the rows: after a crash during recovery, the remaining entries are replayed, and none is
// applied twice.
//
// The flush does not wait for the disk: after a power failure, the journal still has the entries, and the position is
// the old one.
func (s *Store) recover() error {
	projected, found, err := s.w.number(projectedSeq)
	if err != nil {
		return err
	}
	if !found {
		return at(s.path, "%w: its table meta has no position; restore a backup", store.ErrCorrupt)
	}
	s.seq = projected
	for {
		last, err := replay(s.w, s.nets, &s.window, s.seq, s.windowSize())
		if err != nil {
			return fmt.Errorf("recover: %w", explain(s.path, err))
		}
		if last == s.seq {
			return nil
		}
		s.seq = last
		if err := s.flush(); err != nil {
			return err
		}
	}
}

// replay applies up to limit entries after a position to the state of the tables and the window, and adds the results
// to the window. It returns the position of the last one.
func replay(c *conn, nets *tables.Nets, w *window, after int64, limit int) (int64, error) {
	// All rows are read before the first is applied, since applying runs queries on the same connection; the limit
	// bounds the memory. The "+" prevents SQLite from using the value for planning, which would prepare the statement
	// again at each call.
	rows, err := readEntries(c, "SELECT "+entryColumns+" FROM journal j WHERE j.seq > ? ORDER BY j.seq LIMIT +?",
		after, int64(min(limit, math.MaxInt32)))
	if err != nil {
		return 0, err
	}
	newer := func(id workitem.CaseID) *state.Case { return w.cases[id] }
	r := replayer{c: c, nets: nets, window: w, names: tables.NewEntryNets(c, nets, newer),
		trees: map[workitem.CaseID]*state.Tree{}}
	roots := make([]workitem.CaseID, len(rows))
	for i := range rows {
		roots[i] = rows[i].Root
	}
	r.names.Expect(roots)
	for i := range rows {
		if err := r.apply(&rows[i]); err != nil {
			return 0, fmt.Errorf("journal entry %d: %w", rows[i].Seq, err)
		}
		after = rows[i].Seq
	}
	return after, nil
}

// replayer keeps trees from one entry to the next, so that a case with a hundred entries in the window is loaded once.
type replayer struct {
	c      *conn
	nets   *tables.Nets
	window *window
	names  *tables.EntryNets
	trees  map[workitem.CaseID]*state.Tree
}

func (r *replayer) apply(row *storedEntry) error {
	events, err := r.names.Decode(row.Root, row.events)
	if err != nil {
		return err
	}
	t, err := r.tree(row)
	if err != nil {
		return err
	}
	// The engine and the replay apply changes with the same function, so a replay arrives at the same tree or fails.
	t.Begin()
	for _, e := range events {
		if err := t.Apply(e); err != nil {
			return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
		}
	}
	if t.Case(row.Root) == nil {
		return fmt.Errorf("%w: its case %s is not there", store.ErrCorrupt, row.Root)
	}
	r.window.add(row.Seq, events, t.End(row.Seq))
	return nil
}

// tree returns the tree that an entry changes. The first entry of a root case begins with an empty tree. Every other
// one names the previous entry, which must be the newest of the tree: otherwise an entry was lost, or the tables are
// ahead of their position, and the changes would be applied to the wrong state.
func (r *replayer) tree(row *storedEntry) (*state.Tree, error) {
	t := r.trees[row.Root]
	if t == nil && row.Prev == 0 {
		t = state.NewTree()
		t.Root = row.Root
	} else if t == nil {
		var err error
		t, err = loadTree(r.c, r.nets, row.Root, func(id workitem.CaseID) *state.Case { return r.window.cases[id] })
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
		}
	}
	if root := t.Case(row.Root); root != nil && root.LastSeq != row.Prev {
		return nil, fmt.Errorf("%w: it follows entry %d of its case, and the newest there is %d",
			store.ErrCorrupt, row.Prev, root.LastSeq)
	}
	r.trees[row.Root] = t
	return t, nil
}
