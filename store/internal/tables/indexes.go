package tables

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

// A statement of a migration about an index begins a line.
var aboutIndex = regexp.MustCompile(`(?m)^(?:DROP INDEX (?:IF EXISTS )?(\w+)|CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?(\w+) ON (\w+)[^;]*);`)

// Indexes returns the indexes that exist after the migrations, in the order in which they are made, without those of
// primary keys.
func Indexes(migrations []sqlkit.Migration) []store.Index {
	var all []store.Index
	for _, m := range migrations {
		for _, found := range aboutIndex.FindAllStringSubmatch(m.SQL, -1) {
			if dropped := found[1]; dropped != "" {
				all = slices.DeleteFunc(all, func(i store.Index) bool { return i.Name == dropped })
				continue
			}
			all = append(all, store.Index{Name: found[2], Table: found[3], SQL: strings.TrimSuffix(found[0], ";")})
		}
	}
	return all
}
