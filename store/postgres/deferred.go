package postgres

import "context"

// The user's deferred constraints and triggers run at the end of each command of a batch: in the commit they would fail
// all commands. There are two ways, of which the first is the cheaper one while there are few events:
//
//	tried   they run, and that is rolled back; they run again in the commit
//	run     they run for good, and those that are INITIALLY DEFERRED are deferred again for the next command
//
// With the first way, the server runs the events of all earlier commands again at the end of each: 256 commands with one
// event each are 33,000 runs. The second one needs a query for the names of the constraints, and also sets back what a
// SET CONSTRAINTS of the user has changed. So it is used once a transaction has had maxTried commands or such a
// statement, if there are deferrable constraints at all.
const (
	maxTried = 16

	tryDeferred = "SAVEPOINT tasq_check; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK TO SAVEPOINT tasq_check; RELEASE SAVEPOINT tasq_check"
	runDeferred = "SET CONSTRAINTS ALL IMMEDIATE"

	// The names are read each time, since another session may drop a constraint meanwhile.
	deferAgain = "DO $tasq$ DECLARE names text := (SELECT pg_catalog.string_agg(pg_catalog.format('%I.%I', n.nspname, c.conname), ', ') " +
		"FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace " +
		"WHERE c.condeferred AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')); " +
		"BEGIN IF names IS NOT NULL THEN EXECUTE 'SET CONSTRAINTS ' || names || ' DEFERRED'; END IF; END $tasq$"

	// canRun is true if the second way is needed and possible. SET CONSTRAINTS refuses a name that another table of the
	// schema has for a constraint which is not deferrable.
	canRun = "SELECT 1 WHERE EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE condeferrable) AND NOT EXISTS (" +
		"SELECT FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_constraint o USING (connamespace, conname) WHERE c.condeferred AND NOT o.condeferrable)"
)

// checkDeferred makes the server check the user's deferred constraints and triggers at the end of a command. If it
// succeeds, the savepoint is released, and what the command has SET LOCAL is set back.
func (tx *serverTransaction) checkDeferred(level int) error {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	// Once per command, at the outermost level: a constraint may be deferred so that inner levels can violate it for a
	// while.
	if level > 0 || tx.saved == 0 || tx.broken != nil {
		return nil
	}
	err := tx.chooseCheck()
	if err == nil {
		check := tryDeferred
		if tx.runs {
			check = runDeferred
		}
		err = tx.w.exec(context.Background(), check+"; RELEASE SAVEPOINT tasq")
	}
	if err == nil {
		tx.saved--
		err = tx.restoreLocal() // before deferAgain, since a role that was set may lack the right
	}
	if err == nil && tx.runs {
		err = tx.w.exec(context.Background(), deferAgain)
	}
	return tx.Met(err)
}

// chooseCheck counts a command, and chooses the second way when it is time.
func (tx *serverTransaction) chooseCheck() error {
	if tx.checks++; tx.checks != maxTried {
		return nil
	}
	result, err := tx.w.last(context.Background(), canRun)
	if err == nil {
		tx.runs = len(result.Rows) > 0
	}
	return err
}

// noteConstraints has the next check set back what a statement of the user sets for constraints. The lock is held.
func (tx *serverTransaction) noteConstraints(statement string) {
	if hasFold(statement, "constraints") {
		tx.checks = max(tx.checks, maxTried-1)
	}
}
