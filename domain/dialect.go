package domain

// Dialect is the SQL dialect of a database.
type Dialect string

// The dialects of the stores of Tasq. The zero value is any other, or an unknown one.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Speaker is a DB that knows its dialect. The DBs of the stores of Tasq implement it.
type Speaker interface {
	Dialect() Dialect
}

// Namer is a DB that knows the names of Tasq's tables in its database. The DBs of the stores of Tasq implement it.
type Namer interface {
	Table(name string) string
}

// Table returns the name of one of Tasq's tables or views for a statement of a DB. On PostgreSQL it has the schema of the
// store, so that a table of the same name in a schema that comes first in the search path, or a temporary one, is not
// read instead:
//
//	rows, err := db.QueryContext(ctx, "SELECT case_id FROM "+domain.Table(db, "tasks")+" WHERE state = 'started'")
//
// For SQLite, and for any DB that is not of a store of Tasq, such as a *sql.DB of your own, it returns the name unchanged.
func Table(db DB, name string) string {
	if n, ok := db.(Namer); ok {
		return n.Table(name)
	}
	return name
}

// DialectOf returns the dialect of a DB that belongs to a store of Tasq, and "" for any other, such as a *sql.DB of
// your own. Code that runs on both stores needs it where their SQL differs:
//
//	upsert := "INSERT OR REPLACE INTO totals VALUES ($1, $2)"
//	if domain.DialectOf(db) == domain.Postgres {
//		upsert = "INSERT INTO totals VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = excluded.n"
//	}
func DialectOf(db DB) Dialect {
	if s, ok := db.(Speaker); ok {
		return s.Dialect()
	}
	return ""
}
