// Package arch tests the rules of this repository: who may import whom, how large a file may be, where the clock is
// read, and that everything exported has words. There is nothing to import.
package arch
