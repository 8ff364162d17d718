// Package sqlite stores cases in one SQLite file, or in memory.
//
//	e, err := engine.Open(ctx, sqlite.File("article.db"), article)
//
// # Commits
//
// The journal is what a commit writes: [Store.Update] writes one row for each command, commits all of them together,
// and returns when they are on disk. The tables cases, work_items and jobs are a projection of the journal, written
// later in windows: an item that is created, started and completed within a window is written once. A query through the
// store writes the window first, so it always sees current tables. meta.projected_seq is the journal position of the
// tables, and opening a file replays the entries after it. So a crash never loses an acknowledged command.
//
//	Update ─▶ BEGIN ─▶ commands: Append ... ─▶ rows of the journal ─▶ COMMIT ─▶ window, in memory ─▶ answers
//	                                                    └─ and the window of those before, if it is full or old
//	View   ─▶ write the window ─▶ BEGIN ─▶ queries of the tables ─▶ ROLLBACK
//	Open   ─▶ entries beyond projected_seq ─▶ window ─▶ tables
//
// Times in the tables are microseconds since 1970 (UTC), names and states are words, payloads are JSON. The views
// tasks, history and changes show what the tables store as JSON, row by row; use history for the events of one case
// (WHERE case_id = ...), and changes for those of all:
//
//	sqlite3 article.db "SELECT case_id, task, state FROM tasks WHERE state = 'started'"
//
// Other tools can read the file; the tables are at most [DefaultAge] old. Never write to the tables of this package
// from outside.
//
// # Ownership of a file
//
// One process at a time owns a file. It holds an operating system lock on a file beside it ("article.db.lock"), which
// is released when that process ends. The owner checks the files once a second. If the lock file was removed, it
// creates it again. If the database, its log or its index was removed, moved, replaced or truncated, or if another
// engine has opened the file meanwhile, every call returns an error that wraps [store.ErrLost], and no more commands
// are acknowledged. Other processes may read (Options.ReadOnly, exact to the last commit) and leave commands ([Post])
// that the owner executes for them.
//
// # Files of the package
//
//	open, own, presence, log, space      opening, ownership, checks of the files, preallocation of the write-ahead log, a disk with little room
//	conn, mutex, errors                  a connection, the lock of the writer, what errors mean
//	store, tx, savepoint, guard          an update and its transaction, and the user's SQL in it
//	window, rows, behind, remove         writing the tables, removing cases, and failures to write the tables
//	register, nets                       definitions
//	recover, waypoints, journal          the journal: replayed by Open, and read
//	view, reader_db, readonly            readers; in another process, with temporary tables for newer rows
//	query, newest, queues, indexes       lists, the contents of queues, and the indexes that a file lacks
//	find, load, load_many                other queries
//	memory                               databases in memory
//	audit, backup, backup_folder         orphaned rows, copies of a file, their temporary folders
//	inbox, incidents, limits, settings   commands of other processes, open incidents, limits, settings
package sqlite
