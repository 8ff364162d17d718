// Package spelling finds the known word that a user probably meant, for errors that ask "did you mean".
package spelling

import "strings"

// longest is the maximum length, in bytes, of words that are compared.
const longest = 64

// Closest returns the known word with the fewest typing errors relative to word, or "" if none is similar enough. One
// error is allowed for every three letters, so that "edn" finds "end", and "stop" does not find "show". The comparison
// ignores case.
func Closest(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	word = strings.ToLower(word)
	best, fewest := "", max(1, len(word)/3)+1
	for _, k := range known {
		if len(k) > longest {
			continue
		}
		if d := typingErrors(word, strings.ToLower(k)); d < fewest && d < len(k) {
			best, fewest = k, d
		}
	}
	return best
}

// typingErrors returns the number of letters to insert, delete, replace, or swap with their neighbors, to turn a into
// b.
func typingErrors(a, b string) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, prev, row = prev, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := prev[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(prev[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
