//go:build unix

package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// readOnlyDisk reports whether a file system is mounted read-only.
func readOnlyDisk(err error) bool { return errors.Is(err, syscall.EROFS) }

// ownLike gives a file the owner and the group of another one, if this process is the administrator's.
func ownLike(info fs.FileInfo, file string) error {
	like, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(file, int(like.Uid), int(like.Gid))
}
