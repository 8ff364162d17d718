package postgres

import (
	"fmt"
	"io/fs"
	"regexp"
	"sync"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// The names are taken from the migrations, so that no list of tables can be forgotten.
var createTable = regexp.MustCompile(`(?m)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)

// tableNames are the tables that the migrations make.
var tableNames = sync.OnceValue(func() (names []string) {
	files, _ := fs.Glob(schemaFiles, "schema/*.sql") // the pattern is valid
	for _, name := range files {
		text, _ := schemaFiles.ReadFile(name) // it is embedded
		for _, found := range createTable.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names
})

// mustBeWhole refuses a schema whose migrations are recorded but that lacks a table, as after an incomplete restore.
// Otherwise the first statement that needs the table would fail, without advice on what to do.
func (db database) mustBeWhole(c *conn) error {
	var missing []string
	err := c.each("SELECT t FROM unnest($1::text[]) AS t WHERE to_regclass('@.' || t) IS NULL", []any{tableNames()}, func(r *tables.Row) error {
		missing = append(missing, r.Text())
		return r.Err
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	what := "the table " + missing[0]
	if more := len(missing) - 1; more > 0 {
		what += fmt.Sprintf(" and %d others", more)
	}
	return db.at("%w: its schema %s lacks %s: it was restored in part, or the table was dropped: restore a backup", store.ErrCorrupt, db.set.schema, what)
}

// unversioned returns the error of a schema without recorded migrations.
func (db database) unversioned() error {
	return db.at("%w: its schema %s does not say of which version it is, since its table schema_migrations is empty: it was restored in part: "+
		"restore a backup", store.ErrCorrupt, db.set.schema)
}
