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
	"strconv"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/tasq-dev/tasq/store"
)

// resolve finds the file that a path means: a link to it shares its lock and its log. What SQLite would take for something
// else than a path is most likely not meant as one here, either.
func resolve(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path of the database is empty: name a file")
	case path == ":memory:":
		return "", errors.New(":memory: is not a file: use sqlite.Memory()")
	case strings.HasPrefix(path, "file:"):
		return "", fmt.Errorf("%s is a URI: give the path alone, and options as those of sqlite.File", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, mustBeFile(real)
	}
	_, lost := os.Stat(path)
	if _, none := os.Lstat(path); none == nil && errors.Is(lost, fs.ErrNotExist) {
		return "", at(path, "%w: it is a link to a file that is not there: name the file itself: %w", store.ErrNotFound, err)
	}
	if why := (*fs.PathError)(nil); errors.As(lost, &why) && !errors.Is(lost, fs.ErrNotExist) && !errors.Is(lost, fs.ErrPermission) {
		return "", at(path, "the path leads to no file (%w): name the file itself", why.Err) // links in a circle, a file instead of a folder
	}
	return path, nil // it is still to be made, or what is wrong shows when it is opened
}

func mustBeFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil // it shows when the file is opened
	case info.IsDir():
		return at(path, "it is a folder: name the database file in it")
	case !info.Mode().IsRegular():
		return at(path, "it is no regular file, which a database must be")
	}
	return nil
}

// own takes the lock of a file, and checks before that the file is one of Tasq's, so that nothing of another program's
// is touched.
//
// How a process becomes the owner. What fails up to OpenFile leaves everything as it was:
//
//	owned.add       no other store of this process has the file
//	checkHeader     there is a file and no lock file: nothing is made beside the file of another program
//	lockFile        no other process has it; the system gives the lock back when the process ends, also by kill -9
//	checkHeader     the file, which no owner is making at this moment
//	OpenFile        the file is there, and can be written
//	openFile        SQLite's connections, the log, the schema
//	claim           the token, by which an engine that got in beside this one is found
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

// ownFile makes no lock file beside a file that is another program's, so it looks at that before. Where there is a lock file, the look
// that counts is the one under the lock: before it, the owner may just be making the file.
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
	return lock, nil
}

// Owned reports whether an engine has the file of this Opener open, without making or changing anything. One that opens or closes it at the same
// time may be in either answer. A file that is not there has no owner.
func (f file) Owned(context.Context) (bool, error) {
	path, err := resolve(f.path)
	if err != nil {
		return false, err
	}
	if owned.has(path) {
		return true, nil
	}
	// The flag has no O_CREATE. The lock is a shared one, so that two that ask at once do not take each other for an owner.
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

// owned holds the files that this process owns. The lock file alone does not do: it may be removed, the number in it may
// be that of a process in another container, and a file that is open here must not be opened and closed from outside of
// SQLite, which would end the locks of its connections.
var owned = ownedFiles{paths: make(map[string]bool)}

type ownedFiles struct {
	mu    sync.Mutex
	paths map[string]bool
}

// add reserves a file. A hard link to an owned one is the same file.
//
// Locks of files do not do within a process: on some systems a process is given a lock that it has.
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
func (o *ownedFiles) has(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.paths[path]
}

func (o *ownedFiles) remove(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.paths, path)
}

// owner returns a text that names the owner of a file, and says what to do.
func owner(path string) string {
	data, err := os.ReadFile(path + ".lock")
	who := "another process"
	if pid, bad := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && bad == nil {
		who += fmt.Sprintf(" (pid %d)", pid)
	}
	return who + " has it open: stop that one, or open the file for reading only"
}

// prepareFile checks the file, which no other process owns now, and makes it if it is not there.
func prepareFile(path string) error {
	if err := mustHaveFile(path); err != nil {
		return err
	}
	if err := checkHeader(path); err != nil {
		return err
	}
	// To find out whether it can be written. SQLite would open it for reading where it cannot, and say so at the first
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

// checkHeader reads the first 100 bytes of a file, the header of a SQLite database. A missing or empty file is fine.
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
	var header [100]byte
	n, err := io.ReadFull(f, header[:])
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return at(path, "%w", err)
	case n < len(header) || string(header[:16]) != "SQLite format 3\x00":
		return at(path, "%w: it is no SQLite file, and was not touched: choose another name or restore a backup",
			store.ErrForeign)
	case binary.BigEndian.Uint32(header[68:]) != applicationID:
		return notOurs(path)
	}
	return nil
}

func notOurs(path string) error {
	return at(path, "%w: it is another program's SQLite file; it was not touched, so choose another name",
		store.ErrForeign)
}
