package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Journal implements [store.Reader]. The journal has no index by root case:
//
//	seq    1  2  3  4  5  6
//	root   A  B  A  A  B  A
//	prev   0  0  1  3  2  4
//
// The row of A has its newest position, 6, and each entry has the previous one: the walk reads 6, 4, 3 and 1 by primary
// key. An index by root case would be one more page to write with every command.
//
// The entries of root cases are found by walking their chains from the newest. A chain that does not lead back is
// damaged, and the walk stops. If the upper bound is an entry of the chain, the walk begins there, so that a page costs
// only its own entries, however old it is.
func (r *reader) Journal(_ context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	if !f.Desc { // one bound, by which the pages of a walk are found
		f.After = max(f.After, f.From-1)
	}
	if !f.Root.IsZero() && !f.Desc && f.ByPosition() {
		return r.forward(f)
	}
	roots := f.Roots
	if !f.Root.IsZero() {
		roots = []workitem.CaseID{f.Root}
	}
	// With the newest first, After is an upper bound like Until, and the lower of the two counts; From is the lower bound
	// then.
	w, order, above, from := newConditions(), "", f.After, f.Until
	if f.Desc {
		order, above = " DESC", max(f.From-1, 0)
	}
	if f.Desc && f.After > 0 {
		w.Add("j.seq < ?", f.After)
		if from == 0 || f.After < from {
			from = f.After
		}
	}
	if f.Until > 0 {
		w.Add("j.seq <= ?", f.Until)
	}
	w.AddEntries(f)
	query, entries := "", "journal j"
	w.Add("j.seq > ?", above)
	if roots != nil {
		// The queue of the recursive query is ordered, so that the chains of several roots are merged: with A at 6, 4,
		// 3, 1 and B at 5, 2 it yields 6, 5, 4, 3, 2, 1, and a limit of three ends the walk at 4. CROSS JOIN, here and
		// below, fixes the order of the two tables: SQLite has no statistics of the chain, and could scan the whole
		// journal and search the chain for each entry.
		// A chain is followed from its newest entry, so a limit ends it early if the newest are wanted first.
		query = "WITH RECURSIVE chain(seq) AS (SELECT COALESCE((SELECT s.seq FROM journal s WHERE s.seq = ? AND s.root = cases.id), last_seq) " +
			"FROM cases WHERE id IN " + bound + " AND last_seq > ? " +
			"UNION ALL SELECT p.prev FROM chain CROSS JOIN journal p ON p.seq = chain.seq WHERE p.prev > ? AND p.prev < p.seq " +
			"ORDER BY 1 DESC) "
		entries = "chain CROSS JOIN journal j ON j.seq = chain.seq"
		w.Args = append([]any{from, idList(roots), above, above}, w.Args...)
	}
	if roots != nil && f.Desc { // the chain has the newest first; a condition outside of this statement would not end it early
		query += "SELECT " + entryColumns + " FROM " + entries + w.Where() + w.Limit(f.Limit)
	} else { // the rows are selected by position alone, since sorting complete rows would be slow
		query += "SELECT " + entryColumns + " FROM journal j WHERE j.seq IN (SELECT j.seq FROM " + entries + w.Where() +
			" ORDER BY j.seq" + order + w.Limit(f.Limit) + ") ORDER BY j.seq" + order
	}
	rows, err := readEntries(r.c, query, w.Args...)
	if err != nil {
		return nil, err
	}
	return decodeEntries(rows, tables.NewEntryNets(r.c, r.nets, tables.NothingNewer))
}

// walk has the positions of a root case to which a view has walked back, oldest first. A view has one snapshot, so a
// reader that reads a history page by page walks only once.
//
// Without it, reading a history of n entries page by page would walk n, n-100, n-200 ... entries back, which is
// quadratic.
type walk struct {
	root  workitem.CaseID
	above int64 // exclusive lower bound
	until int64 // inclusive upper bound; 0 for none
	seqs  []int64
}

// has reports whether the walk covers all positions that a filter selects.
func (w *walk) has(f store.JournalFilter) bool {
	return w.root == f.Root && f.After >= w.above && (w.until == 0 || f.Until > 0 && f.Until <= w.until)
}

// forward reads a page of entries of one root case, oldest first.
func (r *reader) forward(f store.JournalFilter) ([]*store.Entry, error) {
	// The walk has all positions of the history, and a page takes some of them: with the positions 1, 3, 4 and 6,
	// After 3 and a limit of 1, the page is 4.
	limit := cmp.Or(max(f.Limit, 0), store.DefaultLimit)
	if !r.walked.has(f) {
		if err := r.walkTo(f, limit); err != nil {
			return nil, err
		}
	}
	seqs := r.walked.seqs
	if from, found := slices.BinarySearch(seqs, f.After); found {
		seqs = seqs[from+1:]
	} else {
		seqs = seqs[from:]
	}
	seqs = seqs[:min(len(seqs), limit)]
	if f.Until > 0 {
		end, _ := slices.BinarySearch(seqs, f.Until+1)
		seqs = seqs[:end]
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	// As one parameter, so that pages of any size use the same prepared statement.
	list, _ := json.Marshal(seqs) // numbers cannot fail
	rows, err := readEntries(r.c, "SELECT "+entryColumns+" FROM journal j WHERE j.seq IN (SELECT value FROM json_each(?)) ORDER BY j.seq", string(list))
	if err != nil {
		return nil, err
	}
	return decodeEntries(rows, tables.NewEntryNets(r.c, r.nets, tables.NothingNewer))
}

// walkTo walks back to the beginning of a page: from a waypoint shortly after its end, or from the newest entry.
func (r *reader) walkTo(f store.JournalFilter, limit int) error {
	// With an upper bound the walk begins there, if it is an entry of the case; only an open page needs a waypoint.
	if f.Until == 0 {
		if near := r.ways.beyond(f.Root, f.After, limit); near > 0 {
			part := f
			part.Until = near
			seqs, err := r.walkBack(part)
			if err != nil {
				return err
			}
			// If the file was replaced, the waypoint is no entry of this chain, and the walk may find less than a page.
			// Then the walk begins at the newest entry.
			if len(seqs) >= limit {
				r.walked = walk{root: f.Root, above: f.After, until: near, seqs: seqs}
				if len(seqs)-limit > 4*wayApart { // long, so it covered entries that were not walked before
					r.ways.note(f.Root, seqs)
				}
				return nil
			}
		}
	}
	seqs, err := r.walkBack(f)
	if err != nil {
		return err
	}
	// Without an upper bound the walk began at the newest entry, so the waypoints cover the chain to its end.
	if r.walked = (walk{root: f.Root, above: f.After, until: f.Until, seqs: seqs}); f.Until == 0 {
		r.ways.note(f.Root, seqs)
	}
	return nil
}

// walkBack returns the positions of a root case that a filter selects, oldest first. They are read as one text, since a
// row for each would cost more than the walk.
func (r *reader) walkBack(f store.JournalFilter) (seqs []int64, err error) {
	err = r.c.each("WITH RECURSIVE chain(seq) AS (SELECT COALESCE((SELECT s.seq FROM journal s WHERE s.seq = ? AND s.root = cases.id), last_seq) "+
		"FROM cases WHERE id = ? AND last_seq > ? "+
		"UNION ALL SELECT p.prev FROM chain CROSS JOIN journal p ON p.seq = chain.seq WHERE p.prev > ? AND p.prev < p.seq) "+
		"SELECT group_concat(seq) FROM chain", args(f.Until, f.Root.String(), f.After, f.After), func(row *tables.Row) error {
		for text := range strings.SplitSeq(row.Text(), ",") {
			if seq, err := strconv.ParseInt(text, 10, 64); err == nil && (f.Until == 0 || seq <= f.Until) {
				seqs = append(seqs, seq)
			}
		}
		return row.Err
	})
	// The order in which group_concat gets its rows is not defined.
	slices.Sort(seqs)
	return seqs, err
}

// Counts implements [store.Reader].
//
// The counts are rows that the window maintains, since count(*) would scan an index. A kind without rows keeps its
// count, with 0.
func (r *reader) Counts(context.Context) ([]store.Count, error) {
	return listOf(r.c, "SELECT what, workflow, task, state, n FROM counts WHERE n > 0 ORDER BY 1, 2, 3, 4", nil, tables.ReadCount)
}

// CountsByDefinition implements [store.Reader].
func (r *reader) CountsByDefinition(_ context.Context, live bool) ([]store.DefinitionCount, error) {
	var all []store.DefinitionCount
	for _, query := range tables.ByDefinition("", live) {
		err := r.c.each(query, nil, func(row *tables.Row) error {
			c, err := tables.ReadDefinitionCount(row)
			all = append(all, c)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Backlog implements [store.Reader].
func (r *reader) Backlog(_ context.Context, now time.Time) ([]store.QueueBacklog, error) {
	var b tables.Backlog
	if err := r.c.each(tables.BacklogOfItems(""), nil, b.Items); err != nil {
		return nil, err
	}
	err := r.c.each(tables.BacklogOfJobs("", "?1"), args(state.Micros(now)), b.Jobs)
	return b.Queues(), err
}

// Answered implements [store.Reader].
func (r *reader) Answered(_ context.Context, key string) (*store.Entry, error) {
	// For a reader with temporary tables, its view of the journal hides the entries of removed cases.
	seq, found, err := r.c.number("SELECT k.seq FROM idempotency_keys k JOIN journal j ON j.seq = k.seq WHERE k.key = ?", key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("no command with key %q: %w", key, store.ErrNotFound)
	}
	return findEntry(r.c, r.nets, seq, tables.NothingNewer)
}

// Ended implements [store.Reader].
// A row may be 0 or, in the overlay of a reader, negative; only the sum counts.
func (r *reader) Ended(_ context.Context, f store.RateFilter) ([]store.Ended, error) {
	w := newConditions()
	w.Ended(f)
	columns, by := tables.EndedColumns(f)
	return listOf(r.c, "SELECT "+columns+", sum(n) FROM ended"+w.Where()+" GROUP BY "+by+" HAVING sum(n) > 0",
		w.values(), tables.ReadEnded)
}

// Definitions implements [store.Reader].
func (r *reader) Definitions(context.Context) ([]*store.Definition, error) { return definitions(r.c) }

func definitions(c *conn) ([]*store.Definition, error) {
	return listOf(c, "SELECT "+tables.Definitions+" FROM definitions "+
		"ORDER BY name, version, created, fingerprint", nil, tables.ReadDefinition)
}

// History implements [store.Tx]. The chain of a tree begins before the entries that the transaction has appended.
func (tx *transaction) History(_ context.Context, t *state.Tree, until int64) ([]*store.Entry, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	// The newest entries of the tree may be appended but not in the journal yet, where the walk would not find them:
	// with 12 and 13 appended in this transaction, 13 leads to 12, and that to 9, which is in the journal.
	from := t.Case(t.Root).LastSeq
	for _, c := range slices.Backward(tx.appended) {
		if c.Entry.Seq == from {
			from = c.Entry.Prev
		}
	}
	rows, err := readEntries(tx.s.w, "WITH RECURSIVE chain(seq) AS (SELECT ? UNION ALL SELECT p.prev FROM chain CROSS JOIN journal p ON p.seq = chain.seq "+
		"WHERE p.prev > 0) SELECT "+entryColumns+" FROM journal j WHERE j.seq IN (SELECT seq FROM chain WHERE seq <= ?) ORDER BY j.seq", from, until)
	if err != nil {
		return nil, tx.met(err)
	}
	entries, err := decodeEntries(rows, tables.NewEntryNets(tx.s.w, tx.s.nets, tables.NothingNewer))
	return entries, tx.met(err)
}
