package postgres

import "github.com/tasq-dev/tasq/store/internal/tables"

// Every statement of the store names its tables with the schema: "@.jobs". An unqualified name is looked up first among
// the temporary tables of the session, and then in the schemas of the search path, which belongs to the role, the
// database and the user's SQL. Two things have unqualified names, since the schema is chosen by the user: migrations, and
// the trigger functions that they create. Both run with ownPath.

// ownPath is the search path of the schema alone. pg_temp comes last: where it is not named, it comes first.
const ownPath = "@, pg_temp"

// loose lists the trigger functions that look for a table among the temporary ones first, and that this role may change.
// Migrations of earlier versions created them with the schema as the only name in their path.
const loose = "SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc p WHERE p.pronamespace = to_regnamespace('@') AND " +
	"p.proname IN ('label_case', 'unlabel_case') AND NOT 'search_path=" + ownPath + "' = ANY(COALESCE(p.proconfig, '{}')) AND pg_has_role(p.proowner, 'USAGE') ORDER BY 1"

// findLoose returns the names of these functions, with their arguments.
func findLoose(c *conn) (names []string, err error) {
	err = c.each(loose, nil, func(r *tables.Row) error {
		names = append(names, r.Text())
		return r.Err
	})
	return names, err
}

// tighten has trigger functions use the tables of the schema. It runs under the lock of migrations, since two transactions
// cannot change a function at the same time.
func tighten(c *conn) error {
	names, err := findLoose(c)
	for _, name := range names {
		if _, err := c.run("ALTER FUNCTION " + name + " SET search_path = " + ownPath); err != nil {
			return err
		}
	}
	return err
}

// inFront finds a table named records that an unqualified statement would use in place of Tasq's own, if it has the
// columns of that one.
const inFront = "SELECT c.relnamespace::regnamespace::text FROM pg_catalog.pg_class c WHERE c.oid = to_regclass('records') AND " +
	"c.relnamespace <> '@'::regnamespace AND (SELECT count(*) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND " +
	"a.attname IN ('collection', 'key', 'value')) = 3"

// warnOfRecords logs that there is such a table. Earlier versions kept the records of collections in it.
func (s *Store) warnOfRecords(c *conn) error {
	return c.each(inFront, nil, func(r *tables.Row) error {
		schema := r.Text()
		s.log.Warn("another table named records comes first in the search path; collections of the engine are in that of Tasq's schema. "+
			"If an earlier version has written to the other one, copy its rows", "database", s.db.name, "other", schema+".records",
			"used", s.db.set.schema+".records")
		return r.Err
	})
}
