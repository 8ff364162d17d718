package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

const (
	backupFolder = ".tasq-backup-" // how the names of folders of copies begin
	backupLock   = ".tasq-lock"    // the file in such a folder that its process has locked
)

// makeFolder makes the temporary folder of a copy. end removes it. On a file system without locks, nothing takes the folder for abandoned.
func makeFolder(dir string) (temp string, end func() error, err error) {
	for {
		if temp, err = os.MkdirTemp(dir, backupFolder+"*"); err != nil {
			return "", nil, err
		}
		lock := flock.New(filepath.Join(temp, backupLock), flock.SetFlag(os.O_CREATE|os.O_RDWR))
		locked, failed := lock.TryLock()
		end = func() error { return errors.Join(lock.Close(), os.RemoveAll(temp)) }
		if failed != nil || locked && isAt(lock) {
			return temp, end, nil
		}
		if err := end(); err != nil { // another process took it for abandoned before it was locked
			return "", nil, err
		}
	}
}

// isAt reports whether a locked file still has its name.
func isAt(lock *flock.Flock) bool {
	mine, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(there, mine)
}

// removeAbandoned removes the folders of processes that were killed while they copied, each with as much as a whole copy. The system has released their locks.
// What cannot be removed is left: it is not what the caller wants.
func removeAbandoned(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), backupFolder) {
			continue
		}
		folder := filepath.Join(dir, e.Name())
		lock := flock.New(filepath.Join(folder, backupLock), flock.SetFlag(os.O_RDWR)) // it is not created: without one, the folder is just being made
		if free, err := lock.TryLock(); err == nil && free {
			_ = os.RemoveAll(folder)
			_ = lock.Close()
		}
	}
}
