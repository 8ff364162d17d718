//go:build unix

package sqlite

import (
	"errors"
	"syscall"
)

// readOnlyDisk reports whether a file system is mounted read-only.
func readOnlyDisk(err error) bool { return errors.Is(err, syscall.EROFS) }
