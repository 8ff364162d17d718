package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	sqlite3 "modernc.org/sqlite"

	"github.com/tasq-dev/tasq/store"
)

// lookPace is how often an owner looks at its files, at most: before a command, and while the engine is idle. Four calls
// of stat a second cost nothing that can be measured; four before each command would be a tenth of its time.
const lookPace = time.Second

// presence notices what happens from outside to the files of an owner. SQLite keeps them open and does not look at their
// names again: it goes on writing to a database that was moved or removed, and commits to it would be acknowledged and
// gone.
//
// Files are looked at by name only. To open and close one of them here would end the locks that SQLite has on it, since
// POSIX locks belong to the process and not to the descriptor.
type presence struct {
	path  string
	log   *slog.Logger
	lock  *flock.Flock
	token int64        // in the table meta while this process owns the file
	files []namedFile  // as they were when the file was opened
	size  int64        // of the database file, when it was last looked at
	due   atomic.Bool  // the last look is old
	timer *time.Timer  // sets due
	pages func() int64 // how large the database is by SQLite's account, in bytes; 0 if that cannot be found out
}

type namedFile struct {
	name string
	info os.FileInfo
}

// watchFiles notes how the files of a database lie there. SQLite has all of them open.
func watchFiles(path string, lock *flock.Flock, token int64, log *slog.Logger, pages func() int64) (*presence, error) {
	p := &presence{path: path, log: log, lock: lock, token: token, pages: pages}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			return nil, at(path, "%w: its files changed while it was opened: open it again: %w", store.ErrLost, err)
		}
		p.files = append(p.files, namedFile{name, info})
	}
	p.size = p.files[0].info.Size()
	p.timer = time.AfterFunc(lookPace, func() { p.due.Store(true) })
	return p, nil
}

// check looks at the files if that was not done within the last second. The error wraps [store.ErrLost].
func (p *presence) check() error {
	if !p.due.Load() {
		return nil
	}
	// By a timer and a flag, and not by the clock: the time of the store may be a test's, and a flag costs less than the
	// time of day.
	p.due.Store(false)
	p.timer.Reset(lookPace)
	return p.look()
}

// look compares the files with those that were opened.
func (p *presence) look() error {
	for _, f := range p.files {
		info, err := os.Stat(f.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return p.lost("%s was removed or moved", f.name)
		case err != nil:
			return p.lost("%s cannot be looked at any more (%v)", f.name, err)
		// By device and number, which stay with a file that is renamed and written. A file that is written over in place has
		// them too, and is not found here.
		case !os.SameFile(info, f.info):
			return p.lost("%s was replaced by another file", f.name)
		}
		if f.name == p.path {
			if err := p.checkSize(info.Size()); err != nil {
				return err
			}
		}
	}
	return p.checkLock()
}

// checkSize finds a file that was cut off. It may become smaller by a VACUUM, and then SQLite knows.
func (p *presence) checkSize(size int64) error {
	if size < p.size && p.pages() >= p.size {
		return p.lost("%s was cut off, from %d bytes to %d", p.path, p.size, size)
	}
	p.size = size
	return nil
}

// checkLock makes the lock file again if it was removed. Until then a second engine could get in; what one does is found
// by the token.
func (p *presence) checkLock() error {
	mine, err := p.lock.Stat()
	if err != nil {
		return p.lost("its lock is gone (%v)", err)
	}
	if info, err := os.Stat(p.lock.Path()); err == nil && os.SameFile(info, mine) {
		return nil
	}
	// The old lock stays held meanwhile. It lies on a file without a name, so it keeps no other engine out, and is given
	// back once the new one is there.
	again, err := lockFile(p.path)
	switch {
	case errors.Is(err, store.ErrOwned):
		return p.lost("its lock file %s was removed, and another process has taken the lock since (%v)", p.lock.Path(), err)
	case err != nil:
		p.log.Error("the lock file was removed, and cannot be made anew: another engine can open the database, and this one "+
			"stops if one does", "database", p.path, "error", err)
		return nil
	}
	p.log.Warn("the lock file was removed while the database was in use; it was made anew. Do not remove it: it is no "+
		"remainder of a crash, the system releases the lock of a process that ends", "file", p.lock.Path())
	err = p.lock.Close()
	p.lock = again
	return err
}

// sameLog reports whether the log beside the file is the one that SQLite has open.
func (p *presence) sameLog() bool {
	log := p.files[1]
	info, err := os.Stat(log.name)
	return err == nil && os.SameFile(info, log.info)
}

func (p *presence) lost(format string, args ...any) error {
	return at(p.path, "%w: %s: what was acknowledged in the last seconds may not be in it; stop this process, put the "+
		"files back (the database, its -wal and its -shm) or restore a backup, and open it again",
		store.ErrLost, fmt.Sprintf(format, args...))
}

// end lets go of the lock.
func (p *presence) end() error {
	p.timer.Stop()
	return p.lock.Close()
}

// lockFile takes the lock beside a database, and notes who has it.
func lockFile(path string) (*flock.Flock, error) {
	lock := flock.New(path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := lock.TryLock()
	switch {
	case err != nil && (errors.Is(err, fs.ErrPermission) || readOnlyDisk(err)):
		return nil, at(path, "%w: give this process the right to write the folder: %w", store.ErrReadOnly, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, at(path, "make sure that its folder is there: %w", err)
	case err != nil:
		return nil, at(path, "its lock cannot be taken: %w", err)
	case !locked:
		return nil, at(path, "%w: %s", store.ErrOwned, owner(path))
	}
	// The number is for people, who want to know what to stop. Nothing decides by it, as it may be that of a process in
	// another container.
	if err := os.WriteFile(path+".lock", []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// ownerToken is the row of the table meta that names the owner. A lock file can be removed, and then a second engine
// opens the file: it writes its own token, and the first one finds that before it writes anything more.
const ownerToken = "owner"

// claim makes this store the owner, as far as the database knows.
func (s *Store) claim() error {
	// Random: a counter that was read from a restored backup could come to the number of an engine that still runs.
	token := rand.Int64()
	err := s.w.run("INSERT INTO meta (name, value) VALUES ('"+ownerToken+"', ?) "+
		"ON CONFLICT (name) DO UPDATE SET value = excluded.value", token)
	if err != nil {
		return err
	}
	s.files, err = watchFiles(s.path, s.lock, token, s.log, func() int64 {
		pages, _, err := s.w.number("PRAGMA page_count")
		size, _, err2 := s.w.number("PRAGMA page_size")
		if err != nil || err2 != nil {
			return 0
		}
		return pages * size
	})
	return err
}

// begin opens a write transaction, if the file is still this store's own.
//
// IMMEDIATE takes the write lock at once, and waits for it up to busy_timeout, while another process leaves a command. A
// plain BEGIN takes the lock at the first write: if the other process has committed since the first read, SQLite refuses
// that write without waiting, as it would be based on what is not the newest, and everything that f did is lost.
//
// A second engine, which can get in if the lock file was removed:
//
//	this engine                         the other
//	                                    lock file made again and locked
//	commit 7
//	                                    BEGIN IMMEDIATE; its token into meta; COMMIT; replay up to 7
//	BEGIN IMMEDIATE
//	the token is not its own: lost
//	                                    commit 8
//
// The token is read under the write lock, so none can come between the look and COMMIT. Both engines never write in turns,
// and what this one has acknowledged is what the other begins with.
func (s *Store) begin() error {
	if err := s.present(); err != nil {
		return err
	}
	if err := s.w.run("BEGIN IMMEDIATE"); err != nil {
		return explain(s.path, err)
	}
	err := s.stillOwner()
	if err != nil {
		s.rollback()
	}
	return err
}

// present reports that the files are where they were. Once they are not, the store is of no use any more.
func (s *Store) present() error {
	if s.lost == nil && s.files != nil {
		s.lose(s.files.check())
	}
	return s.lost
}

// stillThere is present for a caller that does not hold the lock.
func (s *Store) stillThere() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present()
}

// The first reason is kept: what fails after it follows from it.
func (s *Store) lose(err error) {
	if err != nil && s.lost == nil {
		s.lost = err
		s.log.Error("the database is lost to this engine, and nothing is acknowledged any more", "error", err)
	}
}

// stillOwner finds out, within a transaction, that no other engine has opened the file.
//
// It is a read of one row by its key, in each transaction; its page is in the cache as long as no other connection writes.
func (s *Store) stillOwner() error {
	if s.files == nil {
		return nil
	}
	token, _, err := s.w.number("SELECT value FROM meta WHERE name = '" + ownerToken + "'")
	if err != nil {
		return explain(s.path, err)
	}
	if token != s.files.token {
		s.lose(at(s.path, "%w: another engine has opened the file, since its lock file %s.lock was removed: everything that "+
			"this engine acknowledged is in it, and the other one goes on with it; stop this one", store.ErrLost, s.path))
	}
	return s.lost
}

// keepOthersLog has the connection leave the log that lies at the file's name when it closes, if that is another
// database's: SQLite removes it by its name.
func (s *Store) keepOthersLog() error {
	if s.files == nil || s.files.sameLog() {
		return nil
	}
	_, err := s.w.raw.(sqlite3.FileControl).FileControlPersistWAL("main", 1)
	return err
}
