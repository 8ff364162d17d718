package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	sqlite3 "modernc.org/sqlite/lib"

	driver "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/store"
)

var errClosed = fmt.Errorf("the store is closed: %w", fs.ErrClosed)

// code is the primary result code of an error of SQLite, 0 for any other.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// explain says what an error of SQLite means here, and what to do about it. Others are returned as they are.
func explain(path string, err error) error {
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%s: the disk is full, so nothing of this happened; free some space and try again: %w", path,
			err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%s: %w: give this process the right to write the file and its folder: %w",
			path, store.ErrReadOnly, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s: %w: restore a backup, or save what is left with sqlite3's .recover command: %w",
			path, store.ErrCorrupt, err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%s: another program keeps the file locked; let it end its transaction: %w", path, err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s: the disk reports an error, so nothing of this happened: %w", path, err)
	}
	return err
}

// undoesAll reports whether SQLite may have rolled the whole transaction back by itself, and not only the statement.
func undoesAll(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_CORRUPT:
		return true
	}
	return false
}
