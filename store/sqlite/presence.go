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
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// lookPace is the least time between two checks of an owner's files: before a command, and while the engine is idle.
// Four calls of stat per second have no measurable cost; four before each command would be a tenth of its time.
const lookPace = time.Second

// presence detects changes of an owner's files from outside. SQLite keeps the files open and does not check their names
// again: it would continue to write to a database that was moved or removed, and acknowledged commits would be lost.
//
// Files are checked by name only. Opening and closing one of them here would release SQLite's locks on it, since POSIX
// locks belong to the process and not to the descriptor.
type presence struct {
	path  string
	log   *slog.Logger
	lock  *flock.Flock
	token int64        // in the table meta while this process owns the file
	files []namedFile  // as of when the file was opened
	size  int64        // of the database file at the last check
	due   atomic.Bool  // a check is due
	timer *time.Timer  // sets due
	pages func() int64 // size of the database according to SQLite, in bytes; 0 if unknown
	needs func() int64 // how long the log is at least according to SQLite; 0 if unknown
}

type namedFile struct {
	name string
	info os.FileInfo
}

// watchFiles records the files of a database. SQLite has all of them open.
func watchFiles(path string, lock *flock.Flock, token int64, log *slog.Logger, pages, needs func() int64) (*presence, error) {
	p := &presence{path: path, log: log, lock: lock, token: token, pages: pages, needs: needs}
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

// check checks the files, unless that was done within the last second. The error wraps [store.ErrLost].
func (p *presence) check() error {
	if !p.due.Load() {
		return nil
	}
	// By a timer and a flag, not by the clock: the store's time may be that of a test, and a flag is faster than the
	// clock.
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
		// By device and inode, which do not change when a file is renamed or written. So a file that is overwritten in
		// place is not detected here.
		case !os.SameFile(info, f.info):
			return p.lost("%s was replaced by another file", f.name)
		}
		switch f.name {
		case p.path:
			err = p.checkSize(info.Size())
		case p.files[1].name:
			err = p.checkLog(f.name)
		case p.files[2].name:
			if info.Size() < f.info.Size() { // SQLite does not make it shorter
				err = p.lost("%s was cut off, from %d bytes to %d", f.name, f.info.Size(), info.Size())
			}
		}
		if err != nil {
			return err
		}
	}
	return p.checkLock()
}

// checkSize detects a truncated file. A VACUUM may also make it smaller, which SQLite reports.
func (p *presence) checkSize(size int64) error {
	if size < p.size && p.pages() >= p.size {
		return p.lost("%s was cut off, from %d bytes to %d", p.path, p.size, size)
	}
	p.size = size
	return nil
}

// checkLog detects a truncated log. What is written to it next would leave a hole, which a checkpoint would copy into the database.
//
// SQLite writes to the log before it changes the index, and makes it shorter after that, so the log has what the index said before, unless a checkpoint
// of another program came in between: then the index says something else.
func (p *presence) checkLog(name string) error {
	for {
		needs := p.needs()
		info, err := os.Stat(name)
		switch {
		case err != nil || info.Size() >= needs:
			return nil // the next look finds that it is gone
		case p.needs() == needs:
			return p.lost("%s was cut off, from at least %d bytes to %d", name, needs, info.Size())
		}
	}
}

// checkLock creates the lock file again if it was removed. Until then a second engine could open the file, which the
// token detects.
func (p *presence) checkLock() error {
	mine, err := p.lock.Stat()
	if err != nil {
		return p.lost("its lock is gone (%v)", err)
	}
	if info, err := os.Stat(p.lock.Path()); err == nil && os.SameFile(info, mine) {
		return nil
	}
	// The old lock stays held meanwhile. Its file has no name, so it excludes no other engine, and it is released once
	// the new lock is held.
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
	shareLock(p.path)
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

// end releases the lock.
func (p *presence) end() error {
	p.timer.Stop()
	return p.lock.Close()
}

// lockFile takes the lock beside a database, and writes the process id to it.
func lockFile(path string) (*flock.Flock, error) {
	lock := flock.New(path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := lock.TryLock()
	switch {
	case err != nil && (errors.Is(err, fs.ErrPermission) || readOnlyDisk(err)):
		return nil, at(path, "%w: give this process the right to write the folder and the lock file: %w", store.ErrReadOnly, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, at(path, "make sure that its folder is there: %w", err)
	case err != nil:
		return nil, at(path, "its lock cannot be taken: %w", err)
	case !locked:
		return nil, at(path, "%w: %s", store.ErrOwned, owner(path))
	}
	// The process id is information for people who want to stop the owner. No code uses it, as it may be that of
	// another container.
	if err := os.WriteFile(path+".lock", []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// shareLock gives the lock file the permissions of the database, as SQLite does with the log. Otherwise a second user
// who may write the database could not lock it, nor ask whether it is locked. It may fail, since that user is not the
// owner of an existing lock file and need not change it.
func shareLock(path string) { _ = shareLike(path, path+".lock") }

// shareLike gives a file the permissions of a database, and, if this process may change owners, its owner. Without the
// latter, files that the administrator creates beside the database of a service would shut out the service.
func shareLike(path, file string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := ownLike(info, file); err != nil {
		return err
	}
	return os.Chmod(file, info.Mode().Perm())
}

// ownerToken is the row of the table meta that identifies the owner. If the lock file was removed, a second engine can
// open the file: it writes its own token, which the first engine finds before it writes anything more.
const ownerToken = "owner"

// claim writes the token that makes this store the owner.
func (s *Store) claim() error {
	// Random: a counter in a restored backup could repeat the number of an engine that still runs.
	token := rand.Int64()
	err := s.w.run("INSERT INTO meta (name, value) VALUES ('"+ownerToken+"', ?) "+
		"ON CONFLICT (name) DO UPDATE SET value = excluded.value", token)
	if err != nil {
		return err
	}
	needs, err := s.sizeOfLog()
	if err != nil {
		return err
	}
	s.files, err = watchFiles(s.path, s.lock, token, s.log, s.sizeOfPages, needs)
	return err
}

// sizeOfPages returns the size of the database according to SQLite; 0 if unknown.
func (s *Store) sizeOfPages() int64 {
	pages, _, err := s.w.number("PRAGMA page_count")
	size, _, err2 := s.w.number("PRAGMA page_size")
	if err != nil || err2 != nil {
		return 0
	}
	return pages * size
}

// sizeOfLog returns a function for how long the log is at least, according to its index; 0 if unknown. It reads no page, which may be in what is lost.
func (s *Store) sizeOfLog() (func() int64, error) {
	const header, frame = 32, 24 // see https://www.sqlite.org/fileformat2.html#walformat
	page, _, err := s.w.number("PRAGMA page_size")
	return func() (bytes int64) {
		err := s.w.each("PRAGMA wal_checkpoint(NOOP)", nil, func(r *tables.Row) error {
			_ = r.Number() // whether it was prevented
			if frames := r.Number(); frames > 0 {
				bytes = header + frames*(frame+page)
			}
			return r.Err
		})
		if err != nil {
			return 0
		}
		return bytes
	}, err
}

// begin opens a write transaction, if this store still owns the file.
//
// IMMEDIATE takes the write lock at once, and waits up to busy_timeout while another process leaves a command. A plain
// BEGIN takes the lock at the first write: if another process has committed since the first read, SQLite fails that
// write immediately, since the snapshot is out of date, and all work of f is lost.
//
// A second engine, which can open the file if the lock file was removed:
//
//	this engine                         the other
//	                                    lock file made again and locked
//	commit 7
//	                                    BEGIN IMMEDIATE; its token into meta; COMMIT; replay up to 7
//	BEGIN IMMEDIATE
//	the token is not its own: lost
//	                                    commit 8
//
// The token is read under the write lock, so no other engine can claim the file between this check and COMMIT. So the
// engines never write by turns, and the other one starts with everything that this one has acknowledged.
func (s *Store) begin() error {
	if s.files != nil && s.wal.shrank() {
		s.files.due.Store(true)
	}
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

// present checks the files. Once they have changed, the store is lost.
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

// The first reason is kept, since later errors follow from it.
func (s *Store) lose(err error) {
	if err != nil && s.lost == nil {
		s.lost = err
		s.log.Error("the database is lost to this engine, and nothing is acknowledged any more", "error", err)
	}
}

// stillOwner checks, within a transaction, that no other engine has opened the file.
//
// It reads one row by its key in each transaction; the page stays in the cache unless another connection writes.
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

// keepForeignLog makes the connection keep the log at the file's name when it closes, if that log belongs to another
// database: SQLite would remove it by its name.
func (s *Store) keepForeignLog() error {
	if s.files == nil || s.files.sameLog() {
		return nil
	}
	_, err := s.w.raw.(sqlite3.FileControl).FileControlPersistWAL("main", 1)
	return err
}
