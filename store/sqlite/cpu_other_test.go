//go:build !unix

package sqlite_test

import "time"

// cpu is not measured here.
func cpu() time.Duration { return 0 }
