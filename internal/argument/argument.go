// Package argument checks arguments whose absence is a mistake of the program. As in the standard library such a mistake is a panic, not an error: no
// input and no configuration causes it, and nothing that the program does at run time repairs it.
package argument

import "context"

// Context panics if the context of a function is nil. of names the function.
func Context(ctx context.Context, of string) {
	if ctx == nil {
		panic("tasq: " + of + " is given a nil context: pass that of the caller, or context.Background()")
	}
}
