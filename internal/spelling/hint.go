package spelling

import (
	"fmt"
	"strings"
)

// Hint ends an error about an unknown word: with the known word that it resembles, or else with what there is.
func Hint(word string, known []string) string {
	if best := Closest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "there is " + List(known)
}

// List shows names, and only the first of many.
func List(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
