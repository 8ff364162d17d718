// Package sqlite stores cases in one SQLite file, or in memory.
//
//	e, err := engine.Open(ctx, sqlite.File("article.db"), article)
//
// # Commits
//
// The journal is the commit unit: [Store.Update] writes one row for each command, makes one commit for all of them, and returns
// when it is on disk. The tables cases, work_items and jobs are a projection of the journal, written behind it in windows: an
// item that is created, started and completed within a window is written once. A query through the store writes the window
// first, so it always sees current tables. meta.projected_seq is the journal position of the tables, and
// opening a file replays the entries after it. So a crash at any moment loses nothing that was acknowledged.
//
//	Update ─▶ BEGIN ─▶ commands: Append ... ─▶ rows of the journal ─▶ COMMIT ─▶ window, in memory ─▶ answers
//	                                                    └─ and the window of those before, if it is full or old
//	View   ─▶ write the window ─▶ BEGIN ─▶ queries of the tables ─▶ ROLLBACK
//	Open   ─▶ entries beyond projected_seq ─▶ window ─▶ tables
//
// Times in the tables are microseconds since 1970 (UTC), names and states are words, payloads are JSON. The views tasks,
// history and changes show what the tables store as JSON, row by row; use history for the events of one case (WHERE case_id
// = ...), and changes for those of all:
//
//	sqlite3 article.db "SELECT case_id, task, state FROM tasks WHERE state = 'started'"
//
// Other tools can read the file; what they see is at most [DefaultAge] behind. Never write to the tables
// of this package from outside.
//
// # Ownership of a file
//
// One process at a time owns a file. An operating system lock beside it ("article.db.lock") is released when that process ends.
// The owner checks the files once a second. If the lock file was removed, it creates it again. If the database, its log or its
// index was removed, moved, replaced or truncated, or if another engine has opened the file meanwhile, every call returns an error
// that wraps [store.ErrLost], and nothing is acknowledged any more.
// Other processes may read (Options.ReadOnly, exact to the last commit) and leave commands ([Post]) that the owner executes for
// them.
//
// # Files of the package
//
//	open, own, presence, log             a file, its lock, whether it is still there, room in the write-ahead log
//	conn, mutex, errors                  a connection, the lock of the writer, what errors mean
//	store, tx, savepoint, guard          an update and its transaction, and the user's SQL in it
//	window, rows, behind, remove         the tables that follow the journal: what is written, when, and what keeps it from being written
//	register, nets                       definitions
//	recover, waypoints, journal          the journal: replayed by Open, and read
//	view, reader_db, readonly            readers beside the writer; in another process, with what the tables lack laid over them
//	query, queues                        lists, and what queues have
//	find, load, load_many                what is read besides
//	memory                               databases in memory
//	audit, backup                        rows that no case leads to, copies of a file
//	inbox, limits, settings              commands that were left, limits, settings
package sqlite
