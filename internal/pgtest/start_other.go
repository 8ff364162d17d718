//go:build !unix

package pgtest

import "fmt"

// start is for systems with a shell.
func start(string) (string, error) {
	return "", fmt.Errorf("%w (on this system tests do not start one)", ErrNone)
}
