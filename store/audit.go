package store

import "context"

// Auditor is a [Reader] that can list what no case leads to, which no other query finds. The integrity check needs it.
type Auditor interface {
	// Audit counts the entries of the journal, and lists up to max rows whose case is not there.
	Audit(ctx context.Context, max int) (Audit, error)
}

// Audit is what a database holds, whether a case leads to it or not.
type Audit struct {
	Entries int64   // of the journal
	Strays  []Stray // rows that belong to no case
}

// Stray is a row that belongs to no case.
type Stray struct {
	What string // "case", "item", "job", "step", "event" or "journal entry"
	ID   string // of the row
	Case string // that it names, and that is not there
}
