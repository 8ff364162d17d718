// Package postgres keeps cases in a PostgreSQL database, version 15 or newer. It needs no extension and no superuser.
//
// # What a commit is
//
// A root case with its descendants is a stream of entries in the table journal, whose key is (root, rev). [Store.Update]
// appends to streams at the revision that the case was read at, and writes the tables that follow from the entries (cases,
// work_items, jobs, steps, messages) in the same transaction: one round trip, or that and the user's own SQL. So whoever
// reads the tables sees what was acknowledged, with any tool.
//
// All tables are in a schema of their own, "tasq" unless [Schema] says otherwise, beside those of the program in the same
// database. Times are microseconds since 1970 (UTC), states and names are words, payloads are JSON as text. The views tasks
// and history show tasks and events row by row. Never write to these tables from outside.
//
// # Who has a database
//
// One engine at a time has a schema open for writing. It holds a lock of the server that ends with its connection, and has a
// row in the table processes without which it cannot commit: an engine that lost its connection, and whose place another one
// has taken, is refused, and gets [store.ErrLost]. Others may read, and leave commands ([Post]) that the engine does.
package postgres
