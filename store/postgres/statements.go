package postgres

import (
	"strings"
	"sync"
)

// statements replaces each "@" in the SQL of this package by the name of the schema.
type statements struct {
	schema string // a name that needs no quotes, see schemaName
	known  sync.Map
}

func newStatements(schema string) *statements {
	return &statements{schema: schema}
}

// text returns a statement as it is sent to the server. The results are cached.
//
// There are few texts: all come from this package, and are constants except for filters, which have few forms.
// Returning the same string also helps the driver, whose cache of prepared statements is keyed by it.
func (s *statements) text(query string) string {
	if known, ok := s.known.Load(query); ok {
		return known.(string)
	}
	text := strings.NewReplacer("@>", "@>", "@", s.schema).Replace(query) // @> is an operator
	s.known.Store(query, text)
	return text
}
