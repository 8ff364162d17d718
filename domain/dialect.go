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
