// Package sqlite keeps cases in one SQLite file, or in memory.
//
// # What a commit is
//
// The journal is the commit unit: [Store.Update] writes one row a command, one commit for all of them, and answers once
// that is on the disk. The tables cases, work_items and jobs are a projection of it, written behind in windows: an item
// that is created, started and completed within a window is written once. A query through the store sees them up
// to date, since a query has them written first; meta.projected_seq says which journal position they agree with, and
// opening a file replays what is beyond it. So a crash at any moment loses nothing that was acknowledged.
//
//	Update ─▶ BEGIN ─▶ commands: Append ... ─▶ rows of the journal ─▶ COMMIT ─▶ window, in memory ─▶ answers
//	                                                    └─ and the window of those before, if it is full or old
//	View   ─▶ write the window ─▶ BEGIN ─▶ queries of the tables ─▶ ROLLBACK
//	Open   ─▶ entries beyond projected_seq ─▶ window ─▶ tables
//
// Times in the tables are microseconds since 1970 (UTC), names and states are words, payloads are JSON. The views tasks,
// history and changes show what the tables hold as JSON, row by row; history is for the events of one case (WHERE case_id
// = ...), and changes for those of all:
//
//	sqlite3 article.db "SELECT case_id, task, state FROM tasks WHERE state = 'started'"
//
// Read the file with other tools as you like; what they see is at most [DefaultAge] behind. Never write to the tables
// of this package from outside.
//
// # Who owns a file
//
// One process at a time owns a file: an operating system's lock beside it ("article.db.lock") dies with that process. The
// owner looks at the files once a second. It makes a lock file that was removed anew; if the database, its log or its index
// was removed, moved, replaced or cut off, or if another engine has opened the file meanwhile, every call returns an error
// that wraps [store.ErrLost], and nothing is acknowledged any more.
// Others may read (Options.ReadOnly, exact to the last commit) and leave commands ([Post]) that the owner does for
// them.
//
// # Where things are
//
//	open, own, presence, log             a file, its lock, whether it is still there, room in the write-ahead log
//	conn, mutex, errors                  a connection, the lock of the writer, what errors mean
//	store, tx, savepoint, guard          an update and its transaction, and the user's SQL in it
//	window, rows, behind, remove         the tables that follow the journal: what is written, when, and what keeps it from being written
//	register, nets                       definitions
//	recover, waypoints, journal          the journal: replayed by Open, and read
//	view, reader_db, readonly            readers beside the writer; in another process, with what the tables lack laid over them
//	query, find, load                    what is read
//	audit, backup                        rows that no case leads to, copies of a file
//	inbox, limits, settings              commands that were left, limits, settings
package sqlite
