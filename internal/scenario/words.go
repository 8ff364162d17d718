package scenario

import "strings"

// words hands out the words of one line of notation, one ahead of the parser. A comma, a colon and an arrow are words
// of their own wherever they stand, so that "C:B,c1" reads like "C: B, c1", and "A->B" like "A -> B". From its first
// "=" on a word ends only at a space or a comma: "policy=quorum:2" is one word.
type words struct {
	tok  string // the current word, "" at the end of the line
	rest string
}

// line starts on another line, whose comment is dropped. A name holds no "#", so the first one always starts a comment.
func (w *words) line(text string) {
	w.rest, _, _ = strings.Cut(text, "#")
	w.next()
}

// next goes on to the next word.
func (w *words) next() {
	w.rest = strings.TrimLeft(w.rest, " \t\r\v\f")
	n := wordLength(w.rest)
	w.tok, w.rest = w.rest[:n], w.rest[n:]
}

// take goes on to the next word if the current one is tok.
func (w *words) take(tok string) bool {
	if w.tok != tok {
		return false
	}
	w.next()
	return true
}

// wordLength measures the word that s starts with. A name may end in a hyphen, and still nothing is ambiguous: in
// "A-->B" the first hyphen is not followed by ">", so it belongs to the name.
func wordLength(s string) int {
	assigned := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ', c == '\t', c == '\r', c == '\v', c == '\f':
			return i
		case c == ',', c == ':' && !assigned:
			return max(i, 1)
		case c == '-' && !assigned && strings.HasPrefix(s[i:], "->"):
			if i == 0 {
				return len("->")
			}
			return i
		case c == '=':
			assigned = true
		}
	}
	return len(s)
}

// mark reports whether tok is punctuation rather than a word.
func mark(tok string) bool { return tok == "," || tok == ":" || tok == "->" }
