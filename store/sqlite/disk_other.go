//go:build !unix

package sqlite

import "io/fs"

// readOnlyDisk reports whether a file system is mounted read-only. On these systems the error is one of missing
// permission.
// it is one of missing permission.
func readOnlyDisk(error) bool { return false }

// ownLike does nothing: these systems have no owner that os.Chown could set.
func ownLike(fs.FileInfo, string) error { return nil }
