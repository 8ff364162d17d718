package postgres

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
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

// lackingRights lists tables with the rights that the role lacks on them. The migrations are only read.
const lackingRights = "SELECT t, string_agg(need, ', ') FROM unnest($1::text[]) t, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) need " +
	"WHERE NOT (t = 'schema_migrations' AND need <> 'SELECT') AND NOT has_table_privilege(to_regclass('@.' || t), need) GROUP BY t ORDER BY t"

// warnOfRights logs which rights the role lacks: a migration by another role may have made tables on which it has none. Otherwise, the first
// statement that needs one would fail, and with it the commit.
func (s *Store) warnOfRights(c *conn) error {
	var lacks []string
	err := c.each(lackingRights, []any{tableNames()}, func(r *tables.Row) error {
		lacks = append(lacks, r.Text()+" ("+r.Text()+")")
		return r.Err
	})
	if len(lacks) > 0 {
		s.log.Warn("the role of this engine lacks rights, and what needs them will fail; grant them to the role", "database", s.db.name,
			"lacks", strings.Join(lacks, ", "), "grant", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+s.db.set.schema+" TO the role")
	}
	return err
}

// unversioned returns the error of a schema without recorded migrations.
func (db database) unversioned() error {
	return db.at("%w: its schema %s does not say of which version it is, since its table schema_migrations is empty: it was restored in part: "+
		"restore a backup", store.ErrCorrupt, db.set.schema)
}
