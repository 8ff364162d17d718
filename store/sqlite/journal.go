package sqlite

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// Journal implements [store.Reader]. The entries of root cases are found by walking their chains from the newest. A
// chain that does not lead back is damaged, and is not followed without end.
func (r *reader) Journal(_ context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	roots := f.Roots
	if !f.Root.IsZero() {
		roots = []workitem.CaseID{f.Root}
	}
	w, order, above := newConditions(), "", f.After
	if f.Desc {
		order, above = " DESC", 0
	}
	if f.Desc && f.After > 0 {
		w.Add("j.seq < ?", f.After)
	}
	if f.Until > 0 {
		w.Add("j.seq <= ?", f.Until)
	}
	if f.By != "" {
		w.Plain("j.actor <> ''") // as the partial index says it
		w.Add("j.actor = ?", f.By)
	}
	query, from := "", "journal j"
	if roots == nil {
		w.Add("j.seq > ?", above)
	} else {
		// A chain is followed from its newest entry, so a limit ends it early if the newest are wanted first.
		query = "WITH RECURSIVE chain(seq) AS (SELECT last_seq FROM cases WHERE id IN " + bound + " AND last_seq > ? " +
			"UNION ALL SELECT p.prev FROM chain CROSS JOIN journal p ON p.seq = chain.seq WHERE p.prev > ? AND p.prev < p.seq " +
			"ORDER BY 1 DESC) "
		from = "chain CROSS JOIN journal j ON j.seq = chain.seq"
		w.Args = append([]any{idList(roots), above, above}, w.Args...)
	}
	// The rows are chosen by their positions alone: to sort them with all that they hold would be slow.
	query += "SELECT " + entryColumns + " FROM journal j WHERE j.seq IN (SELECT j.seq FROM " + from + w.Where()
	if roots == nil || !f.Desc {
		query += " ORDER BY j.seq" + order
	}
	query += w.Limit(f.Limit) + ") ORDER BY j.seq" + order
	rows, err := readEntries(r.c, query, w.Args...)
	if err != nil {
		return nil, err
	}
	return decodeEntries(rows, tables.NewEntryNets(r.c, r.nets, tables.NothingNewer))
}

// Counts implements [store.Reader].
func (r *reader) Counts(context.Context) ([]store.Count, error) {
	var all []store.Count
	err := r.c.each("SELECT what, workflow, task, state, n FROM counts WHERE n > 0 ORDER BY 1, 2, 3, 4", nil,
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

// Definitions implements [store.Reader].
func (r *reader) Definitions(context.Context) ([]*store.Definition, error) { return definitions(r.c) }

func definitions(c *conn) ([]*store.Definition, error) {
	var all []*store.Definition
	err := c.each("SELECT "+tables.Definitions+" FROM definitions "+
		"ORDER BY name, version, created, fingerprint", nil, func(row *tables.Row) error {
		d, err := tables.ReadDefinition(row)
		all = append(all, d)
		return err
	})
	return all, err
}
