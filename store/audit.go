package store

import "context"

// Auditor is a Reader that can list what no other query finds: orphaned rows, and missing indexes. The integrity check needs it.
type Auditor interface {
	// Audit counts the entries of the journal, and lists up to max rows whose case does not exist, for which it reads
	// all tables unless max is 0.
	Audit(ctx context.Context, max int) (Audit, error)

	// MissingIndexes lists the indexes of the schema that were dropped, or that cannot be used. Without one, a query reads a
	// whole table, and without a primary key, commits fail. It is empty for a database of a newer program.
	MissingIndexes(ctx context.Context) ([]Index, error)
}

// Audit is the result of an audit: the size of the journal, and rows that no case refers to.
type Audit struct {
	Entries int64    // of the journal
	Orphans []Orphan // rows that belong to no case
}

// Orphan is an orphaned row, whose case does not exist.
type Orphan struct {
	What string // "case", "item", "job", "step", "event" or "journal entry"
	ID   string // of the row
	Case string // the missing case
}

// Index is an index that a database lacks.
type Index struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	SQL   string `json:"sql"` // the statement that makes it, without a semicolon
}
