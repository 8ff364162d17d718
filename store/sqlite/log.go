package sqlite

import (
	"io"
	"os"
)

// logFile keeps room at the end of the write-ahead log. A commit that makes the file longer waits for the file system's
// own journal too: 220 us instead of 125 where this was measured. SQLite writes over what is there once it has moved the
// log into the database, but that is after forty megabytes.
//
// The room is zeros. SQLite reads a log up to the first frame whose checksum is wrong, so they are nothing to it, whether
// the process is killed or the power fails. They are written within a write transaction, when no other process can add
// to the log.
type logFile struct {
	path string   // "" keeps no room
	f    *os.File // nil until the first look
	size int64    // of the file, with the room that was made
}

const (
	logSmall = 256 << 10 // up to here a log grows by itself: many databases never write more
	logRoom  = 1 << 20   // how much room is made at once
	logFull  = 40 << 20  // about where SQLite restarts; see wal_autocheckpoint
)

var zeros [logRoom]byte

// keepRoom makes room once SQLite has used up what there was. What goes wrong here goes wrong again, and is reported, when SQLite
// needs the room; until then there is none.
func (l *logFile) keepRoom() {
	if l.path == "" {
		return
	}
	size, err := l.length()
	if err == nil && size > l.size && size >= logSmall && size < logFull {
		var n int
		n, err = l.f.WriteAt(zeros[:], size)
		size += int64(n)
	}
	l.size = size
	if err != nil {
		l.close()
	}
}

// length seeks the end instead of asking for the file's attributes: who asks Linux (since 6.13) for the time of the last change
// has the next write note it again, at full resolution, and the sync that follows store that as well. Syncs took 178 us
// instead of 110 where this was measured.
func (l *logFile) length() (int64, error) {
	if l.f == nil {
		f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		l.f = f
	}
	return l.f.Seek(0, io.SeekEnd)
}

// close lets go of the file, and keeps no more room.
func (l *logFile) close() {
	if l.f != nil {
		_ = l.f.Close() // nothing of it is waited for
	}
	*l = logFile{}
}
