package pgtest

import (
	"os"
	"syscall"
)

// A file system in memory, and how much has to be free in it. In a container it often has 64 MB.
const (
	memory     = "/dev/shm"
	freeMemory = 4 << 30 // bytes
)

// tempFolder is where the folder of a server is made whose data need not survive. Making and removing a thousand small files, as each server
// does and each database, takes a disk's file system a second or more of a processor, and one in memory a tenth of it. TMPDIR comes first.
func tempFolder() string {
	var free syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &free) != nil || free.Bavail*uint64(free.Bsize) < freeMemory {
		return os.TempDir()
	}
	return memory
}
