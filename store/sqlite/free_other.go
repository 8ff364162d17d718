//go:build !(linux || darwin || freebsd)

package sqlite

// freeSpace knows nothing on this system.
func freeSpace(string) (bytes uint64, known bool) { return 0, false }
