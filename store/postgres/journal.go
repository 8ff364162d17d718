package postgres

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Journal implements [store.Reader].
// How the entries are found:
//
//	of one root case        by revision, a part of the primary key: no other entry is read
//	of several root cases   all entries of each, which are then sorted by position
//	of all                  by the index of positions
func (r *reader) Journal(_ context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	w := newConditions()
	from, desc := w.from("journal", "j", f.Roots)+" ", ""
	switch {
	case !f.Desc:
		w.Add("j.seq > ?", f.After)
	case f.After > 0:
		w.Add("j.seq < ?", f.After)
	}
	if f.Desc {
		desc = " DESC"
	}
	if f.From > 0 {
		w.Add("j.seq >= ?", f.From)
	}
	if f.Until > 0 {
		w.Add("j.seq <= ?", f.Until)
	}
	if r.until > 0 {
		w.Add("j.seq <= ?", r.until)
	}
	w.AddEntries(f)
	if f.Settled {
		// Below the horizon no transaction is in progress, so no entry can appear there any more.
		w.Plain("j.seq < " + horizon)
	}
	order := "j.seq"
	if !f.Root.IsZero() {
		w.Add("j.root = ?", uuid(f.Root))
		order = "j.rev" // the same order, by the primary key
		boundRevisions(&w.Conditions, f)
	}
	return readEntries(r.c, r.nets, from+w.Where()+" ORDER BY "+order+desc+w.Limit(f.Limit), tables.NothingNewer, w.Args...)
}

// boundRevisions adds the bounds of a filter by position also as bounds of the revision, if the bound is the position
// of an entry of the case. Entries of a root case are found by revision, so a page of a long history costs as much as
// it has entries.
func boundRevisions(w *tables.Conditions, f store.JournalFilter) {
	const of = "COALESCE((SELECT s.rev FROM @.journal s WHERE s.seq = ? AND s.root = ?), "
	switch {
	case f.After == 0:
	case f.Desc:
		w.AddEach("j.rev < "+of+"9223372036854775807)", f.After, uuid(f.Root))
	default:
		w.AddEach("j.rev > "+of+"-1)", f.After, uuid(f.Root))
	}
	if f.Until > 0 {
		w.AddEach("j.rev <= "+of+"9223372036854775807)", f.Until, uuid(f.Root))
	}
}

// The driver encodes arrays of this type; that of ids it does not know.
func uuids[T any](list []workitem.Key[T]) [][16]byte {
	all := make([][16]byte, len(list))
	for i, id := range list {
		all[i] = id
	}
	return all
}

// Counts implements [store.Reader].
func (r *reader) Counts(context.Context) ([]store.Count, error) {
	var all []store.Count
	// Both tables are read by one statement, and so in one snapshot: Idle moves rows from one to the other, and they
	// would be counted twice or not at all.
	err := r.c.each("SELECT what, workflow, task, state, sum(n)::bigint FROM (SELECT * FROM @.counts UNION ALL "+
		"SELECT * FROM @.count_deltas) c GROUP BY 1, 2, 3, 4 HAVING sum(n) > 0 ORDER BY 1, 2, 3, 4", nil,
		func(row *tables.Row) error {
			n, err := tables.ReadCount(row)
			all = append(all, n)
			return err
		})
	return all, err
}

// CountsByDefinition implements [store.Reader].
func (r *reader) CountsByDefinition(_ context.Context, live bool) ([]store.DefinitionCount, error) {
	var all []store.DefinitionCount
	for _, query := range tables.ByDefinition("@.", live) {
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
	if err := r.c.each(tables.BacklogOfItems("@."), nil, b.Items); err != nil {
		return nil, err
	}
	err := r.c.each(tables.BacklogOfJobs("@.", "$1"), []any{state.Micros(now)}, b.Jobs)
	return b.Queues(), err
}

// Answered implements [store.Reader].
func (r *reader) Answered(_ context.Context, key string) (*store.Entry, error) {
	// A reader sees what is committed, and no cases in the memory of an engine.
	found, err := keyedEntries(r.c, r.nets, tables.NothingNewer, r.last(), key)
	if err == nil && len(found) == 0 {
		err = unknownKey(key)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// Ended implements [store.Reader].
func (r *reader) Ended(_ context.Context, f store.RateFilter) ([]store.Ended, error) {
	w := newConditions()
	w.Ended(f)
	columns, by := tables.EndedColumns(f)
	return listOf(r.c, "SELECT "+columns+", sum(n)::bigint FROM (SELECT * FROM @.ended UNION ALL SELECT * FROM @.ended_deltas) e"+
		w.Where()+" GROUP BY "+by+" HAVING sum(n) > 0", w.Args, tables.ReadEnded)
}

// Definitions implements [store.Reader].
func (r *reader) Definitions(context.Context) ([]*store.Definition, error) {
	return listOf(r.c, "SELECT "+tables.Definitions+" FROM @.definitions "+
		"ORDER BY name, version, created, fingerprint", nil, tables.ReadDefinition)
}

// History implements [store.Tx].
func (tx *transaction) History(_ context.Context, t *state.Tree, until int64) ([]*store.Entry, error) {
	if err := tx.readable(); err != nil {
		return nil, err
	}
	w := newConditions()
	w.Add("j.root = ?", uuid(t.Root))
	w.Add("j.seq <= ?", until)
	entries, err := readEntries(tx.w, tx.s.nets, allEntries+w.Where()+" ORDER BY j.rev", tables.NothingNewer, w.Args...)
	return entries, tx.met(err)
}
