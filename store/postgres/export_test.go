package postgres

import (
	"io/fs"
	"time"

	"github.com/tasq-dev/tasq/store"
)

// Patience says how long the server may take to answer, and how long the outcome of a commit is asked for, instead of the bounds that
// are right for users.
func Patience(answer, outcome time.Duration) Option {
	return func(s *settings) { s.patience, s.attention, s.resolve = answer, answer, outcome }
}

// KeepAhead says how long a transaction that was begun ahead waits for its update.
func KeepAhead(d time.Duration) Option { return func(s *settings) { s.keepAhead = d } }

// Parts says how many entries are worth a part, of trees that have ended and of a large commit.
func Parts(ended, large int) Option {
	return func(s *settings) { s.fewestEnded, s.fewestLarge = ended, large }
}

// Fold has the next Idle of a store fold the counts.
func Fold(s store.Store) { s.(*Store).deltas = foldAfter }

// TableNames are the tables of the schema.
func TableNames() []string { return tableNames() }

// CommitStatements are the statements that a commit may run on tables that grow.
func CommitStatements() []string {
	all := append([]string{fenced, keepKeys, lockRoots, lockRoot, findStale, notLocked, lockCase, replyOnce}, removals...)
	for _, s := range []statement{
		caseRows.insert, caseRows.update, itemRows.insert, itemRows.update, jobRows.insert, jobRows.update, insertSteps, upsertSteps, upsertMessages, appendEntries, appendKnown,
	} {
		all = append(all, s.many, s.one)
	}
	texts := newStatements("tasq")
	for i, query := range all {
		all[i] = texts.text(query)
	}
	return all
}

// WriterSettings are statements that set what the session has that runs these.
func WriterSettings() (all []string) {
	for _, s := range writerNeeds {
		all = append(all, "SET "+s.name+" = '"+s.value+"'")
	}
	return all
}

// SchemaFiles has the migrations of another program, in a folder schema.
func SchemaFiles(files fs.FS) Option { return func(s *settings) { s.schemaFiles = files } }

// Migrations are the files of this program.
func Migrations() fs.FS { return schemaFiles }

// WindowOf is [Window] without its bound.
func WindowOf(age time.Duration) Option { return func(s *settings) { s.window = age } }

// CheckServer checks what a server reports.
func CheckServer(reports map[string]string) error {
	return database{name: "PostgreSQL database a"}.checkServer(func(name string) string { return reports[name] })
}

// Explain adds what an error of the server means.
func Explain(err error) error { return database{name: "PostgreSQL database a"}.explain(err) }
