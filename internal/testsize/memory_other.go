//go:build !linux

package testsize

import "os"

// TempFolder is where tests make files that need not survive a power failure.
func TempFolder() string { return os.TempDir() }
