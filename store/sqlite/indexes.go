package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// missingIndexes returns the indexes that the migrations make and the file lacks. Which ones a newer program needs is unknown to this one.
func missingIndexes(c *conn, known []sqlkit.Migration) ([]store.Index, error) {
	newest, _, err := c.number("SELECT max(version) FROM migrations")
	if err != nil || newest != int64(len(known)) {
		return nil, err
	}
	there := make(map[string]bool)
	err = c.each("SELECT name FROM main.sqlite_schema WHERE type = 'index'", nil, func(r *tables.Row) error {
		there[r.Text()] = true
		return r.Err
	})
	return slices.DeleteFunc(tables.Indexes(known), func(i store.Index) bool { return there[i.Name] }), err
}

// makeIndexes makes the indexes that the file lacks, as after a repair of the file by hand.
func (s *Store) makeIndexes() error {
	known, err := migrations()
	if err != nil {
		return err
	}
	missing, err := missingIndexes(s.w, known)
	for _, i := range missing {
		if err := s.w.exec(i.SQL); err != nil {
			return fmt.Errorf("index %s cannot be made: %w", i.Name, err)
		}
		s.log.Warn("an index of the database was missing, and is made anew", "database", s.path, "index", i.Name, "table", i.Table)
	}
	return err
}

// MissingIndexes implements [store.Auditor].
func (r *reader) MissingIndexes(context.Context) ([]store.Index, error) {
	known, err := migrations()
	if err != nil {
		return nil, err
	}
	return missingIndexes(r.c, known)
}
