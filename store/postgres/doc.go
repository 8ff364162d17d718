// Package postgres stores cases in a PostgreSQL database, version 15 or newer, for one or several engines. It needs no
// extension and no superuser.
//
//	e, err := engine.Open(ctx, postgres.Open("postgres://app@db.example/article"), article)
//
// # Commits
//
// A root case with its descendants is a stream of entries in the table journal, whose key is (root, rev).
// [Store.Update] appends to streams at the revision at which the case was read. In the same transaction it writes the
// tables that derive from the entries (cases, work_items, jobs, steps, messages): one round trip, plus the user's own
// SQL. So any tool that reads the tables sees everything that was acknowledged.
//
//	engine A                                    engine B
//	load case 7: newest entry 17, rev 4         load case 7: newest entry 17, rev 4
//	Append  ─▶ in memory                        Append  ─▶ in memory
//	commit  ─▶ rev 5 behind entry 17: done      commit  ─▶ rev 5 behind entry 17: there is an entry 18
//	notify B                                    store.ErrConflict: load case 7 again, and run the command again
//
// All tables are in their own schema, "tasq" unless [Schema] says otherwise, beside those of the program in the same
// database. Times are microseconds since 1970 (UTC), states and names are words, payloads are JSON as text. The views
// tasks and history show tasks and events row by row. Never write to these tables from outside.
//
// # Engines that share a database
//
// Engines share a schema, unless one opens it with [Alone]. Each has a session with an advisory lock, which ends with
// its connection, and a row in the table processes. A commit locks that row, and fails without it: an engine that was
// declared dead, because its session or its heartbeats have ended, gets [store.ErrLost], and other engines take over
// its jobs. Other processes may read, and leave commands ([Post]) that an engine executes.
//
// # Files of the package
//
//	open, parameters, server, migrate, names, whole, indexes  opening, what the connection string says of Tasq, what the server must be, migrations, the search path of what they create, the check that all tables exist, and the indexes
//	session, statements                       settings of a session, the texts of statements
//	conn, batch, pipeline                     a connection, statements of one round trip, and how they are sent
//	errors, drop                              what errors mean, removing a schema
//	store, tx                                 an update, and what it writes
//	server_transaction, savepoint, user, guard, local  its transaction on the server, the user's SQL in it, and the settings that it changes
//	deferred                                  the user's deferred constraints at the end of a command
//	commit, lost, parts, rows, remove, register  what one commit sends, in parts if it is large: fence, entries, rows, removals; its outcome; definitions
//	window, alone, project                    rows that are written after their commits, while there is one engine; from the journal after a crash
//	upsert, columns, arrays, copy             the statements for rows, and their columns as arrays; COPY of the new rows of a large commit
//	ahead, position, revisions, stale, locked, blocked  transaction ids, positions, conflicts with other engines, locks of other programs, and whose lock a statement waits for
//	presence, member, members, tick, take, adopt, dead  membership, heartbeats, the jobs and records of dead engines, and jobs that none holds
//	hold, hints, inbox                        which engine holds a job, notifications between engines, commands of other processes
//	reader, query, queues, find, load, journal  queries
//	audit, incidents, limits, settings        orphaned rows, open incidents, limits, settings
package postgres
