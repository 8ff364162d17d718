package cli_test

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/internal/sqlkit"
)

// older makes a file as the first version made it, older FILE, or owns one as a program of that version does until the
// script ends, older --own FILE.
func older(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "--own" {
		lock := flock.New(ts.MkAbs(args[1]) + ".lock")
		locked, err := lock.TryLock()
		ts.Check(err)
		if !locked {
			ts.Fatalf("%s is owned", args[1])
		}
		ts.Defer(func() { _ = lock.Close() })
		return
	}
	known, err := sqlkit.Load(os.DirFS("../../../../store/sqlite/schema"))
	ts.Check(err)
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	first := known[0]
	for _, statement := range []string{
		"PRAGMA application_id = 0x54415351", // "TASQ"
		"PRAGMA journal_mode = WAL",
		"CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied INTEGER NOT NULL)",
		first.SQL,
	} {
		_, err := db.ExecContext(context.Background(), statement)
		ts.Check(err)
	}
	_, err = db.ExecContext(context.Background(), "INSERT INTO migrations VALUES (1, ?, ?, 0)", first.Name, first.Checksum)
	ts.Check(err)
	ts.Check(db.Close())
}

// edit executes SQL on a file: edit FILE STATEMENT.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(errors.Join(err, db.Close()))
}
