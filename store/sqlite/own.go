package sqlite

import (
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
		return "", errors.New(":memory: is no file: use sqlite.Memory()")
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
	if _, lost := os.Lstat(path); lost == nil && errors.Is(err, fs.ErrNotExist) {
		return "", at(path, "%w: it is a link to a file that is not there: name the file itself: %w", store.ErrNotFound, err)
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
func own(path string) (*flock.Flock, error) {
	lock := flock.New(path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR))
	if _, err := os.Stat(lock.Path()); errors.Is(err, fs.ErrNotExist) {
		// Nobody owns the file. Where somebody does, it must not be opened and closed from outside of SQLite, which
		// would give up the locks of another connection in this process.
		if err := checkHeader(path); err != nil {
			return nil, err
		}
	}
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
	if err := prepareFile(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	owned.Store(path, true)
	return lock, nil
}

// owned holds the files that this process owns, so that an error can tell itself from another process: the number in
// the lock file cannot, since processes in two containers may have the same.
var owned sync.Map // by path

// owner says who owns a file, and what to do.
func owner(path string) string {
	if _, here := owned.Load(path); here {
		return "this process has it open already: use that engine, or close it before"
	}
	data, err := os.ReadFile(path + ".lock")
	who := "another process"
	if pid, bad := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && bad == nil {
		who += fmt.Sprintf(" (pid %d)", pid)
	}
	return who + " has it open: stop that one, or open the file for reading only"
}

// prepareFile checks the file, which nobody else owns now, and notes who does.
func prepareFile(path string) error {
	if err := checkHeader(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrPermission) || readOnlyDisk(err) {
		return at(path, "%w: give this process the right to write it: %w", store.ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.WriteFile(path+".lock", []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
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
			store.ErrCorrupt)
	case binary.BigEndian.Uint32(header[68:]) != applicationID:
		return notOurs(path)
	}
	return nil
}

func notOurs(path string) error {
	return at(path, "%w: it is another program's SQLite file; it was not touched, so choose another name",
		store.ErrCorrupt)
}
