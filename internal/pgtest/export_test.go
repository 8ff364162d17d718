//go:build unix

package pgtest

// Programs is where the programs of the server are.
func Programs(t T) string { t.Helper(); return ownPrograms(t) }
