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

// firstTable finds a table with the name of one of Tasq's, that of the migrations first, and how many of the columns of that one it has. It is one query on the
// catalog, so that it sees all that a migration makes or nothing of it.
const firstTable = "SELECT k.relname::text, (SELECT count(*) FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.oid AND NOT a.attisdropped AND " +
	"a.attname IN ('version', 'name', 'checksum', 'applied')) FROM pg_catalog.pg_class k JOIN pg_catalog.pg_namespace n ON n.oid = k.relnamespace " +
	"WHERE n.nspname = '@' AND k.relname = ANY($1::text[]::name[]) ORDER BY k.relname <> 'schema_migrations', k.relname LIMIT 1"

// hasSchema reports whether the schema was made by a migration. The error wraps [store.ErrForeign] if it has a table of another program that has the name
// of one of Tasq's; other programs keep their migrations in a table schema_migrations, too.
func (db database) hasSchema(c *conn) (bool, error) {
	name, columns := "", int64(0)
	err := c.each(firstTable, []any{append([]string{"schema_migrations"}, tableNames()...)}, func(r *tables.Row) error {
		name, columns = r.Text(), r.Number()
		return r.Err
	})
	switch {
	case err != nil || name == "":
		return false, err
	case name != "schema_migrations" || columns != 4:
		return false, db.foreign("its table " + name)
	}
	return true, nil
}

func (db database) foreign(what string) error {
	return db.at("%w: its schema %s has tables of another program, and was not changed: name another schema (%s=NAME in the connection string) or database: %s",
		store.ErrForeign, db.set.schema, schemaKeyword, what)
}

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
