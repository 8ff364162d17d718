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
	limit := int64(f.Limit)
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	roots := f.Roots
	if !f.Root.IsZero() {
		roots = []workitem.CaseID{f.Root}
	}
	var rows []storedEntry
	var err error
	if roots == nil {
		rows, err = readEntries(r.c, "SELECT "+entryColumns+" FROM journal j WHERE j.seq > ? ORDER BY j.seq LIMIT ?",
			f.After, limit)
	} else {
		rows, err = readEntries(r.c, "WITH RECURSIVE chain(seq) AS ("+
			"SELECT last_seq FROM cases WHERE id IN "+bound+" AND last_seq > ? "+
			"UNION ALL SELECT j.prev FROM chain CROSS JOIN journal j ON j.seq = chain.seq WHERE j.prev > ? AND j.prev < j.seq) "+
			"SELECT "+entryColumns+" FROM journal j "+
			"WHERE j.seq IN (SELECT seq FROM chain ORDER BY seq LIMIT ?) ORDER BY j.seq",
			idList(roots), f.After, f.After, limit)
	}
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
