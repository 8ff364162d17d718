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

// Fingerprint implements [tables.Source].
func (c *conn) Fingerprint(id workitem.CaseID) (fingerprint string, err error) {
	err = c.each("SELECT fingerprint FROM cases WHERE id = ?", args(textOf(id)), func(r *tables.Row) error {
		fingerprint = r.Text()
		return r.Err
	})
	return fingerprint, err
}
