//go:build linux || darwin || freebsd

package sqlite

import "syscall"

// freeSpace returns how much of the file system of a folder a process without privileges can still use.
func freeSpace(folder string) (bytes uint64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, false
	}
	return uint64(max(0, int64(s.Bavail))) * uint64(s.Bsize), true // FreeBSD has a number below 0 where only the administrator can write
}
