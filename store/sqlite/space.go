package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
)

// space has SQLite keep the log short where the file system has little room.
//
// Usually the log grows to forty megabytes before SQLite moves it into the database and starts from its beginning. A small disk would be full before:
// of the log, as what is in the database may be a small part of it. Then nothing could be committed any more, and not even the log be moved, since
// the database would grow by that.
type space struct {
	free  func(folder string) (bytes uint64, known bool)
	short bool // whether the log is kept short
	due   bool // the next command looks at the file system
}

const (
	littleSpace = 2 * logFull // room for the log, and for the database to grow by it
	enoughSpace = 3 * logFull
	shortLog    = 1 << 20
	shortWindow = 100 // commands: a window of thousands has megabytes of rows, which one transaction writes to the log
)

// windowSize returns how many commands a window has at most.
func (s *Store) windowSize() int {
	if s.space.short {
		return min(s.set.window, shortWindow)
	}
	return s.set.window
}

// keepRoom preallocates the log when it has grown, or has SQLite keep it short.
func (s *Store) keepRoom() {
	grown := s.wal.hasGrown()
	if grown || s.space.due {
		s.space.due = false
		if err := s.keepShort(); err != nil {
			s.log.Warn("the log is not adapted to the free space of the disk", "error", explain(s.path, err))
		}
	}
	if grown && !s.space.short {
		s.wal.extend()
	}
}

// keepShort has SQLite keep the log short, or not, as the file system has little room or enough.
func (s *Store) keepShort() error {
	free, known := s.space.free(filepath.Dir(s.path))
	short := known && (free < littleSpace || s.space.short && free < enoughSpace)
	if short == s.space.short {
		return nil
	}
	pages, limit := fullLogPages, -1
	if short {
		pages, limit = shortLog/pageSize, shortLog
	}
	// SQLite moves the log into the database after so many pages, and cuts it off at the limit when it starts from the beginning.
	err := errors.Join(s.w.exec(fmt.Sprintf("PRAGMA wal_autocheckpoint=%d", pages)), s.w.exec(fmt.Sprintf("PRAGMA journal_size_limit=%d", limit)))
	if err == nil {
		s.space.short = short
	}
	return err
}
