package spelling

import (
	"fmt"
	"strings"
)

// Hint returns the end of an error about an unknown word: the known word that it resembles, or otherwise all known
// words.
func Hint(word string, known []string) string {
	if best := Closest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "there is " + List(known)
}

// List formats names; of many it has only the first.
func List(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
