package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	sqlite3 "modernc.org/sqlite/lib"

	driver "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

var errClosed = fmt.Errorf("the store is closed: %w", fs.ErrClosed)

// code returns the primary result code of an error of SQLite, 0 for any other.
// The extended codes, such as those of an I/O error by operation, have the primary code in their lowest byte.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// fault is an error with the name of the database, which prevents a second prefix.
// An error passes through several functions that could add the name: explain and at leave out those that have it.
type fault struct {
	path string
	err  error
}

func (f *fault) Error() string { return f.path + ": " + f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func at(path, format string, args ...any) error { return &fault{path, fmt.Errorf(format, args...)} }

// explain adds what an error of SQLite, or a damaged row, means here, and what to do about it. It returns other errors
// unchanged.
func explain(path string, err error) error {
	if known := (*fault)(nil); errors.As(err, &known) {
		return err
	}
	const cure = "restore a backup, or save what is left with sqlite3's .recover command"
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		return at(path, "%w: the disk is full, so nothing of this happened; free some space and try again: %w",
			store.ErrUnavailable, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return at(path, "%w (%w): give this process the right to write the file and its folder: %w", store.ErrReadOnly,
			store.ErrUnavailable, err)
	case sqlite3.SQLITE_NOTADB:
		return at(path, "%w: it is no SQLite file, or its first page is lost: choose another name or restore a backup: %w",
			store.ErrForeign, err)
	case sqlite3.SQLITE_CORRUPT:
		return at(path, "%w: %s: %w", store.ErrCorrupt, cure, err)
	// After busy_timeout: another program, such as sqlite3, has an open write transaction. The lock of another engine
	// is handled by own.
	case sqlite3.SQLITE_BUSY:
		return at(path, "%w: another program keeps the file locked; let it end its transaction: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_IOERR:
		return at(path, "%w: the disk reports an error, so nothing of this happened: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_CANTOPEN:
		return at(path, "%w: it cannot be opened: check the rights of this process to the file and its folder, and its limit of open "+
			"files: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL:
		return at(path, "%w, so nothing of this happened: %w", store.ErrUnavailable, err)
	}
	// Errors of decoding a row are not errors of SQLite: the file is readable, and its content is damaged.
	switch {
	case errors.Is(err, store.ErrCorrupt) && !errors.Is(err, sqlkit.ErrChanged):
		return at(path, "%s: %w", cure, err)
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrNewer):
		return at(path, "%w", err)
	}
	return err
}

// undoesAll reports whether SQLite may have rolled back the whole transaction, and not only the statement.
//
// The first five are those of https://www.sqlite.org/lang_transaction.html ("Response To Errors Within A Transaction").
// There are more here, since abandoning a transaction without need only costs a second run, while using one that is
// closed would commit half a command.
func undoesAll(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}
