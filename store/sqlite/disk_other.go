//go:build !unix

package sqlite

// readOnlyDisk reports whether a file system is mounted for reading only. Where there is no error of its own for that,
// it is one of missing permission.
func readOnlyDisk(error) bool { return false }
