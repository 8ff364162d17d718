//go:build !unix

package pgtest

import "fmt"

// Restartable is for systems with a shell.
func Restartable(t T) *Cluster {
	t.Helper()
	t.Skip(fmt.Sprint(ErrNone, " (on this system tests do not start one)"))
	return nil
}

// start is for systems with a shell.
func start(string, bool) (string, error) {
	return "", fmt.Errorf("%w (on this system tests do not start one)", ErrNone)
}

// Pooler is for systems with a shell.
func Pooler(t T, _ string) (through func(dsn string) string) {
	t.Helper()
	t.Skip("on this system tests do not start a pooler")
	return nil
}

// Replicated is for systems with a shell.
func Replicated(t T, _ bool) *Pair {
	t.Helper()
	t.Skip("on this system tests do not start servers")
	return nil
}

// NeedsPooler is for systems with a shell.
func NeedsPooler(t T) {
	t.Helper()
	t.Skip("on this system tests do not start a pooler")
}
