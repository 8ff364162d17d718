package state

import (
	"maps"
	"slices"
)

// Wire is any change as it is stored.
type Wire = wire

// DecodeOdd is DecodeChanges without the scanner.
var DecodeOdd = decodeAny

// Odd reports whether the scanner leaves a text to encoding/json.
func Odd(data []byte) bool {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	n := 0
	for s.begin(data); s.next(n == 0, new(wire)); n++ {
	}
	return s.odd
}

// ScannedKeys are the keys that the scanner knows, sorted.
func ScannedKeys() []string { return slices.Sorted(maps.Keys(readers)) }
