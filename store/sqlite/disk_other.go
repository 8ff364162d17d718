//go:build !unix

package sqlite

// readOnlyDisk reports whether a file system is mounted read-only. On these systems the error is one of missing
// permission.
// it is one of missing permission.
func readOnlyDisk(error) bool { return false }
