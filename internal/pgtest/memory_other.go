//go:build unix && !linux

package pgtest

import "os"

// tempFolder is where the folder of a server is made.
func tempFolder() string { return os.TempDir() }
