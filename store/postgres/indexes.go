package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// A table, and its primary key: of one column, or of several.
var (
	wholeTable  = regexp.MustCompile(`(?ms)^CREATE TABLE (?:IF NOT EXISTS )?(\w+) \(\n(.*?)\n\)`)
	keyOfColumn = regexp.MustCompile(`(?m)^    (\w+) .*PRIMARY KEY`)
	keyOfTable  = regexp.MustCompile(`(?m)^    PRIMARY KEY (\(.*?\))`)
)

// primaryKeys returns the indexes of the primary keys that migrations make.
func primaryKeys(migrations []sqlkit.Migration) (all []store.Index) {
	for _, m := range migrations {
		for _, found := range wholeTable.FindAllStringSubmatch(m.SQL, -1) {
			key := ""
			if of := keyOfTable.FindStringSubmatch(found[2]); of != nil {
				key = of[1]
			} else if of := keyOfColumn.FindStringSubmatch(found[2]); of != nil {
				key = "(" + of[1] + ")"
			} else {
				continue
			}
			name := found[1] + "_pkey"
			all = append(all, store.Index{Name: name, Table: found[1], SQL: "ALTER TABLE " + found[1] + " ADD CONSTRAINT " + name + " PRIMARY KEY " + key})
		}
	}
	return all
}

// indexStates lists the indexes of the given names that are missing or unusable, by their position in the list. An index is unusable if CREATE
// INDEX CONCURRENTLY or REINDEX CONCURRENTLY has failed.
const indexStates = "SELECT n.i, '@', CASE WHEN i.indexrelid IS NULL THEN 'missing' ELSE 'unusable' END " +
	"FROM unnest($1::text[]) WITH ORDINALITY AS n (name, i) " +
	"LEFT JOIN pg_catalog.pg_class c ON c.relname = n.name AND c.relnamespace = to_regnamespace('@') AND c.relkind = 'i' " +
	"LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid " +
	"WHERE i.indexrelid IS NULL OR NOT i.indisvalid OR NOT i.indisready ORDER BY n.i"

// missingIndexes returns the indexes that the migrations make and that the schema lacks or cannot use. Which ones a newer program needs is
// unknown to this one.
func missingIndexes(c *conn, known []sqlkit.Migration) (missing []store.Index, err error) {
	newest, _, err := c.number("SELECT max(version)::bigint FROM @.schema_migrations")
	if err != nil || newest != int64(len(known)) {
		return nil, err
	}
	expected := append(tables.Indexes(known), primaryKeys(known)...)
	var names []string
	for _, i := range expected {
		names = append(names, i.Name)
	}
	err = c.each(indexStates, []any{names}, func(r *tables.Row) error {
		i, schema, state := expected[r.Number()-1], r.Text(), r.Text()
		if state == "unusable" {
			i.SQL = fmt.Sprintf("REINDEX INDEX %s.%s", schema, i.Name)
		} else {
			i.SQL = strings.Replace(i.SQL, " "+i.Table+" ", " "+schema+"."+i.Table+" ", 1)
		}
		missing = append(missing, i)
		return r.Err
	})
	return missing, err
}

// warnOfIndexes logs which indexes are missing. An engine does not make them, since nothing can be written to a table meanwhile.
func (s *Store) warnOfIndexes(c *conn) error {
	missing, err := s.missingIndexes(c)
	for _, i := range missing {
		s.log.Warn("an index of the database is missing or cannot be used, so statements read the whole table, or fail; tasq migrate makes it",
			"database", s.db.name, "index", i.Name, "table", i.Table, "sql", i.SQL)
	}
	return err
}

// makeIndexes makes the missing indexes. The lock of migrations keeps two programs from making the same one.
func (s *Store) makeIndexes(ctx context.Context, c *conn) error {
	missing, err := s.missingIndexes(c)
	if err != nil || len(missing) == 0 {
		return err
	}
	return c.transaction(ctx, func() error {
		if err := lockMigrations(ctx, c); err != nil {
			return err
		}
		missing, err := s.missingIndexes(c)
		for _, i := range missing {
			if _, err := c.pg.PgConn().Exec(ctx, i.SQL).ReadAll(); err != nil {
				return s.db.at("index %s cannot be made: %w", i.Name, err)
			}
		}
		return err
	})
}

func (s *Store) missingIndexes(c *conn) ([]store.Index, error) {
	known, err := migrations(s.db.set.schemaFiles)
	if err != nil {
		return nil, err
	}
	return missingIndexes(c, known)
}

// MissingIndexes implements [store.Auditor].
func (r *reader) MissingIndexes(context.Context) ([]store.Index, error) {
	known, err := migrations(schemaFiles)
	if err != nil {
		return nil, err
	}
	return missingIndexes(r.c, known)
}
