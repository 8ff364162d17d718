package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

// serverKeyword matches the beginning of a connection string that consists of keywords and values.
var serverKeyword = regexp.MustCompile(`^\s*(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|application_name|connect_timeout|target_session_attrs)\s*=`)

// resolve returns the file of a path, with links resolved: a link shares the lock and the log of its target. It refuses
// what SQLite would not take for a path.
func resolve(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path of the database is empty: name a file")
	case path == ":memory:":
		return "", errors.New(":memory: is not a file: use sqlite.Memory()")
	case strings.HasPrefix(path, "file:"):
		return "", fmt.Errorf("%s is a URI: give the path alone, and options as those of sqlite.File", path)
	}
	// A path may have :// behind a directory; a URL has it behind its first word.
	if scheme, _, is := strings.Cut(path, "://"); is && !strings.ContainsAny(scheme, `/\`) {
		return "", fmt.Errorf("the path of the database begins with %s://, as the URL of a server: give the path of a file, or "+
			"the URL of a PostgreSQL server, which begins with postgres://", scheme)
	}
	if keyword := serverKeyword.FindStringSubmatch(path); keyword != nil { // it may have a password, so it is not in the error
		return "", fmt.Errorf("the path of the database begins with %s=, as the connection string of a server: give a PostgreSQL server as a URL, "+
			"postgres://user@host/database, or write ./%[1]s=... for a file", keyword[1])
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// The lock file lies beside the target, so programs that name a file by different links must all find the same
	// name.
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, mustBeFile(real)
	}
	_, lost := os.Stat(path)
	if _, none := os.Lstat(path); none == nil && errors.Is(lost, fs.ErrNotExist) {
		return "", at(path, "%w: it is a link to a file that is not there: name the file itself: %w", store.ErrNotFound, err)
	}
	if why := (*fs.PathError)(nil); errors.As(lost, &why) && !errors.Is(lost, fs.ErrNotExist) && !errors.Is(lost, fs.ErrPermission) {
		return "", at(path, "the path leads to no file (%w): name the file itself", why.Err) // links in a circle, or a file instead of a directory
	}
	return path, nil // it does not exist yet, or opening it reports the error
}

// SQLite would open a pipe or a device, and block or fail in a way that does not say why.
func mustBeFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil // opening it reports the error
	case info.IsDir():
		return at(path, "it is a folder: name the database file in it")
	case !info.Mode().IsRegular():
		return at(path, "it is no regular file, which a database must be")
	}
	return nil
}

// own takes the lock of a file. It first checks that the file is one of Tasq's, so that no file of another program is
// changed.
//
// The steps by which a process becomes the owner. A failure of those before OpenFile changes nothing:
//
//	owned.add       no other store of this process has the file
//	checkHeader     if there is a file without a lock file: creates nothing beside the file of another program
//	lockFile        no other process has it; the system releases the lock when the process ends, also by kill -9
//	checkHeader     again, now that no owner can be creating the file
//	OpenFile        the file exists and can be written
//	openFile        SQLite's connections, the log, the schema
//	claim           the token that detects a second engine on the file
//	recover         the entries that the tables lack
func own(path string) (*flock.Flock, error) {
	if err := owned.add(path); err != nil {
		return nil, err
	}
	lock, err := ownFile(path)
	if err != nil {
		owned.remove(path)
	}
	return lock, err
}

// ownFile creates no lock file beside the file of another program, so it checks the header first. If there is a lock
// file, only the check under the lock counts: before that, the owner may be creating the file.
func ownFile(path string) (*flock.Flock, error) {
	if _, err := os.Stat(path + ".lock"); errors.Is(err, fs.ErrNotExist) {
		if err := checkHeader(path); err != nil {
			return nil, err
		}
	}
	lock, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	if err := prepareFile(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	shareLock(path)
	return lock, nil
}

// Owned reports whether an engine has the file of this Opener open, without creating or changing anything. An engine
// that is opening or closing it may or may not be counted. A file that does not exist has no owner.
func (f file) Owned(context.Context) (bool, error) {
	path, err := resolve(f.path)
	if err != nil {
		return false, err
	}
	if owned.has(path) {
		return true, nil
	}
	// Without O_CREATE. The lock is shared, so that two concurrent callers do not take each other for an owner.
	lock := flock.New(path+".lock", flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, at(path, "its lock cannot be looked at: %w", err)
	}
	return !free, lock.Close()
}

// owned has the files that this process owns. The lock file alone is not enough: it may be removed, and the process id
// in it may be that of another container. Also, a file that is open here must not be opened and closed outside of
// SQLite, which would release the locks of its connections.
var owned = ownedFiles{paths: make(map[string]bool)}

type ownedFiles struct {
	mu    sync.Mutex
	paths map[string]bool
}

// add reserves a file. A hard link to an owned file is the same file.
//
// File locks do not work within a process: some systems grant a process a lock that it already has.
func (o *ownedFiles) add(path string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	info, err := os.Stat(path)
	for other := range o.paths {
		same := other == path
		if there, err2 := os.Stat(other); err == nil && err2 == nil {
			same = same || os.SameFile(info, there)
		}
		if same {
			return at(path, "%w: this process has it open already: use that engine, or close it before", store.ErrOwned)
		}
	}
	o.paths[path] = true
	return nil
}

// has reports whether this process owns a file.
// The path is that which resolve returns: links are resolved, so equal files have equal paths except for hard links.
func (o *ownedFiles) has(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.paths[path]
}

// It is also called if the file could not be opened after it was added.
func (o *ownedFiles) remove(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.paths, path)
}

// owner describes the owner of a file, and what to do.
// The lock file has the number of the process that took the lock. It is only text for the error: the lock itself
// decides.
func owner(path string) string {
	data, err := os.ReadFile(path + ".lock")
	who := "another process"
	if pid, bad := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && bad == nil {
		who += fmt.Sprintf(" (pid %d)", pid)
	}
	return who + " has it open: stop that one, or open the file for reading only"
}

// prepareFile checks the file, which no other process owns now, and creates it if it does not exist.
func prepareFile(path string) error {
	if err := mustHaveFile(path); err != nil {
		return err
	}
	if err := checkHeader(path); err != nil {
		return err
	}
	// This finds out whether the file can be written. Otherwise SQLite opens it read-only, and fails only at the first
	// command.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrPermission) || readOnlyDisk(err) {
		return at(path, "%w: give this process the right to write it: %w", store.ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// magic is what every SQLite file begins with.
const magic = "SQLite format 3\x00"

// headerSize is the length of the header of a SQLite database.
const headerSize = 100

// checkHeader checks the header of a file. A missing or empty file is valid.
func checkHeader(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return at(path, "%w: give this process the right to read and write it: %w", store.ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var header [headerSize]byte
	n, err := io.ReadFull(f, header[:])
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return at(path, "%w", err)
	case n < len(header) && strings.HasPrefix(magic, string(header[:min(n, len(magic))])):
		return cutOff(path, n)
	case n < len(header) || string(header[:len(magic)]) != magic:
		return at(path, "%w: it is no SQLite file, and was not touched: choose another name or restore a backup",
			store.ErrForeign)
	case binary.BigEndian.Uint32(header[68:]) != applicationID:
		return notOurs(path)
	}
	return nil
}

// cutOff is the error of a file of which less than the header is left, as after a copy that was interrupted. Whose it was cannot be told.
func cutOff(path string, length int) error {
	return at(path, "%w: the file is cut off: it has only the first %s of a SQLite file, and was not touched; restore a backup, or copy it again",
		store.ErrCorrupt, printable.Plural(length, "byte"))
}

// notOurs is the error of a file with another application id, which a reader takes for 0 if the file ends before it.
func notOurs(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() < headerSize {
		return cutOff(path, int(info.Size()))
	}
	return at(path, "%w: it is another program's SQLite file; it was not touched, so choose another name",
		store.ErrForeign)
}
