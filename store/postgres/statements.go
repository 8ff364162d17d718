package postgres

import (
	"strings"
	"sync"
)

// statements are the texts of this package with the name of the schema instead of each "@".
type statements struct {
	schema string // a name that needs no quotes, see schemaName
	known  sync.Map
}

func newStatements(schema string) *statements {
	return &statements{schema: schema}
}

// text returns a statement as the server gets it. Only texts of this package come here, so there are few.
//
// The texts are constants but for filters, whose terms are few. A cached text also is the same string for the driver, whose
// cache of prepared statements is keyed by it.
func (s *statements) text(query string) string {
	if known, ok := s.known.Load(query); ok {
		return known.(string)
	}
	text := strings.NewReplacer("@>", "@>", "@", s.schema).Replace(query) // @> is an operator
	s.known.Store(query, text)
	return text
}
