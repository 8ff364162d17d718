package tables

import (
	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

// Older returns the error that a schema lacks migrations.
func Older(pending []sqlkit.Migration) *store.OlderError {
	e := new(store.OlderError)
	for _, m := range pending {
		e.Pending = append(e.Pending, store.Migration{Version: m.Version, Name: m.Name})
	}
	return e
}
