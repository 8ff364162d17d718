package scenario

import "strings"

// words splits a line of notation into words, one ahead of the parser. A comma, a colon and an arrow are always
// separate words, so that "C:B,c1" equals "C: B, c1", and "A->B" equals "A -> B". After its first "=" a word ends only
// at a space or a comma: "policy=quorum:2" is one word.
type words struct {
	tok  string // the current word, "" at the end of the line
	rest string
}

// line begins with another line, without its comment. Names have no "#", so the first one begins the comment.
func (w *words) line(text string) {
	w.rest, _, _ = strings.Cut(text, "#")
	w.next()
}

// next reads the next word.
func (w *words) next() {
	w.rest = strings.TrimLeft(w.rest, " \t\r\v\f")
	n := wordLength(w.rest)
	w.tok, w.rest = w.rest[:n], w.rest[n:]
}

// take reads the next word if the current one is tok.
func (w *words) take(tok string) bool {
	if w.tok != tok {
		return false
	}
	w.next()
	return true
}

// wordLength returns the length of the word at the beginning of s. A name can end in a hyphen, which is not ambiguous:
// in "A-->B" the first hyphen is not followed by ">", so it belongs to the name.
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

// mark reports whether tok is punctuation.
func mark(tok string) bool { return tok == "," || tok == ":" || tok == "->" }
