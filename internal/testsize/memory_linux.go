package testsize

import (
	"os"
	"syscall"
)

// A file system in memory, and how much has to be free in it. In a container it often has 64 MB.
const (
	memory     = "/dev/shm"
	freeMemory = 4 << 30 // bytes
)

// TempFolder is where tests make files that need not survive a power failure: /dev/shm, if 4 GB are free there and TMPDIR is not set, or
// [os.TempDir]. Making and removing a thousand small files, as each server of a database does and each database, takes a disk's file system
// a second or more of a processor, and one in memory a tenth of it; and nothing waits for a disk.
func TempFolder() string {
	var free syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &free) != nil || free.Bavail*uint64(free.Bsize) < freeMemory {
		return os.TempDir()
	}
	return memory
}
