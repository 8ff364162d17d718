package printable

import (
	"fmt"
	"strings"
)

// Brief is the beginning of a text: at most so many characters, and "…" if there are more.
func Brief(text []byte, most int) string {
	r := []rune(string(text))
	if len(r) <= most {
		return string(r)
	}
	return string(r[:most]) + "…"
}

// Plural is a number of things: "1 token", "2 tokens", "3 crashes".
func Plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "sh"), strings.HasSuffix(what, "ch"):
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Choice is a list of what one of is meant: "a", "a or b", "a, b or c"; of more than five the first four and how many there are besides.
func Choice(of []string) string {
	if len(of) > 5 {
		of = append(of[:4:4], fmt.Sprintf("one of %d more", len(of)-4))
	}
	if len(of) < 2 {
		return strings.Join(of, "")
	}
	return strings.Join(of[:len(of)-1], ", ") + " or " + of[len(of)-1]
}

// WithArticle returns a word with its indefinite article: "an event", "a case". It goes by the first letter.
func WithArticle(word string) string {
	if word != "" && strings.IndexByte("aeiou", word[0]) >= 0 {
		return "an " + word
	}
	return "a " + word
}
