package admin

import (
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/admin/internal/view"
)

// Patterns lists the routes of a handler, for the table of rights.
func Patterns(b Backend, c Config) []string {
	return slices.Sorted(maps.Keys(routes(b, &c, view.New(&view.Site{Backend: b}))))
}
