package sqlite

import (
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// Document implements [tables.Source].
func (c *conn) Document(fingerprint string) (doc string, err error) {
	err = c.each("SELECT net FROM definitions WHERE fingerprint = ?", args(fingerprint), func(r *tables.Row) error {
		doc = r.Text()
		return r.Err
	})
	return doc, err
}

// Fingerprints implements [tables.Source].
func (c *conn) Fingerprints(ids []workitem.CaseID, f func(workitem.CaseID, string)) error {
	return c.each("SELECT id, fingerprint FROM cases WHERE id IN "+bound, args(idList(ids)), func(r *tables.Row) error {
		f(tables.ID[workitem.CaseID](r), r.Text())
		return r.Err
	})
}
