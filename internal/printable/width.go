package printable

import (
	"unicode"

	"golang.org/x/text/width"
)

// zeroWidthJoiner joins the emoji before and after it to one.
const zeroWidthJoiner = '\u200d'

// Width is the number of columns that a text takes on a terminal: two for a wide character of East Asia or an emoji, and none for a mark that is
// drawn on the character before it.
func Width(s string) int {
	total := 0
	for _, n := range columns([]rune(s)) {
		total += n
	}
	return total
}

// Cut shortens a text to a number of columns: at its end, or else in the middle. A character keeps its marks.
func Cut(s string, most int, atEnd bool) string {
	if Width(s) <= most {
		return s
	}
	r := []rune(s)
	n := columns(r)
	if atEnd {
		return string(r[:head(n, most-1)]) + "…"
	}
	back := (most - 1) / 2
	return string(r[:head(n, most-1-back)]) + "…" + string(r[tail(n, back):])
}

// head is how many runes of the beginning fit, with all marks of the last one.
func head(n []int, most int) int {
	for i, w := range n {
		if most -= w; most < 0 {
			return i
		}
	}
	return len(n)
}

// tail is the index of the first rune of an end that fits.
func tail(n []int, most int) int {
	from := len(n)
	for i := len(n) - 1; i >= 0; i-- {
		if most -= n[i]; most < 0 {
			break
		}
		if n[i] > 0 {
			from = i
		}
	}
	return from
}

// columns is how many columns each rune takes. A selector for emoji widens the rune before it.
func columns(r []rune) []int {
	n := make([]int, len(r))
	base := -1 // the rune on which marks are drawn
	for i, c := range r {
		switch {
		case c == '\ufe0f' && base >= 0 && r[base] > unicode.MaxASCII:
			n[base] = 2
		case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf) || i > 0 && r[i-1] == zeroWidthJoiner && n[max(base, 0)] == 2 || skin(c) && base >= 0 && n[base] == 2:
		default:
			n[i], base = wide(c), i
		}
	}
	return n
}

func wide(c rune) int {
	switch width.LookupRune(c).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// skin reports whether a rune is the color of the skin of the emoji before it.
func skin(c rune) bool { return c >= 0x1f3fb && c <= 0x1f3ff }
