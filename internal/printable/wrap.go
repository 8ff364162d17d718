package printable

import "strings"

// leastWrap is the least width at which text is wrapped. Below, a terminal itself does no worse.
const leastWrap = 40

// Wrap breaks the lines of a text at spaces, so that none takes more columns than a width, and indents what follows by four more than the
// line begins. A word that is longer, such as a path, stays whole, and so does a command of tasq that fits into a line, since it is copied. With
// a small width, or none, the text is returned as it is.
func Wrap(text string, width int) string {
	if width < leastWrap {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if Width(line) > width {
			lines[i] = wrapLine(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string, width int) string {
	words := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(words)]
	next := "\n" + indent + "    "
	var b strings.Builder
	b.WriteString(indent)
	at, first := len(indent), true
	for _, part := range parts(words, width-len(next)+1) {
		n := Width(part)
		switch {
		case first:
		case at+1+n > width:
			b.WriteString(next)
			at = len(next) - 1
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(part)
		at, first = at+n, false
	}
	return b.String()
}

// parts returns the words of a line, where a command is one word if it has at most so many columns.
func parts(line string, most int) (all []string) {
	words := strings.Split(line, " ")
	for len(words) > 0 {
		n := 1
		if c := commandOf(words); Width(strings.Join(words[:c], " ")) <= most {
			n = c
		}
		all, words = append(all, strings.Join(words[:n], " ")), words[n:]
	}
	return all
}

// commandOf returns how many words from the first on are a command of tasq: up to the first that ends with punctuation. Of others it is 1.
func commandOf(words []string) int {
	if strings.TrimLeft(words[0], "(") != "tasq" {
		return 1
	}
	for i, w := range words {
		if w != "" && strings.ContainsRune(",;:)", rune(w[len(w)-1])) {
			return i + 1
		}
	}
	return len(words)
}
