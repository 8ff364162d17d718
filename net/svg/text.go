package svg

import (
	"strings"
	"unicode"
)

// helvetica has the widths of the printable ASCII characters in thousandths of the font's size, as Helvetica, Arial and
// their free equivalents have them.
var helvetica = [...]int{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, // space to /
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, // 0 to ?
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, // @ to O
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, // P to _
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, // ` to o
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584, // p to ~
}

// wide are the scripts whose characters fill a square.
var wide = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo}

// glyph is the width of a character in thousandths of the font's size. Beyond ASCII it is a guess on the safe side.
func glyph(r rune) int {
	switch {
	case r >= ' ' && int(r-' ') < len(helvetica):
		return helvetica[r-' ']
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, wide...), r >= 0x1F000, r >= 0x3000 && r < 0x3100, r >= 0xFF00 && r < 0xFFE8:
		return 1000
	case unicode.IsUpper(r):
		return 778
	}
	return 600
}

// textWidth estimates the width of a line. A twentieth is added, since the font that is found may not be the one that
// was measured.
func textWidth(line string, size int) int {
	sum := 0
	for _, r := range line {
		sum += glyph(r)
	}
	return (sum*size*21/20 + 999) / 1000
}

// block is a text in lines, and how much room it takes.
type block struct {
	lines []string
	whole string // the text as a whole if the lines are cut, "" otherwise
	width int
	size  int // of the font
}

func (b *block) height() int { return len(b.lines) * lineHeight(b.size) }

func lineHeight(size int) int { return size + 2 }

// maxLines is how many lines a text has at most.
const maxLines = 4

// wrap breaks a text into lines. It takes the narrowest of the widths that breaks no word and needs no more than three
// lines, or else the widest. What does not fit into [maxLines] then is cut, and the last line ends with "…".
func wrap(text string, size int, widths ...int) block {
	text = clean(text)
	pieces := split(text)
	var b block
	for _, width := range widths {
		broken := false
		if b, broken = fill(pieces, size, width); !broken && len(b.lines) <= 3 {
			break
		}
	}
	if len(b.lines) > maxLines {
		b.whole = text
		b.cut(widths[len(widths)-1])
	}
	return b
}

// cut leaves out the lines that are too many.
func (b *block) cut(width int) {
	b.lines = b.lines[:maxLines]
	last := []rune(b.lines[maxLines-1])
	for len(last) > 1 && textWidth(string(last)+"…", b.size) > width {
		last = last[:len(last)-1]
	}
	b.lines[maxLines-1] = strings.TrimSpace(string(last)) + "…"
	b.width = 0
	for _, line := range b.lines {
		b.width = max(b.width, textWidth(line, b.size))
	}
}

// clean replaces what XML cannot hold and makes every run of white space a single space.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == 0xFFFE, r == 0xFFFF:
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
	return strings.Join(strings.Fields(text), " ")
}

// split cuts a text where a line may end: behind spaces and marks like - _ . / and where aLetter follows in upper case.
func split(text string) []string {
	var pieces []string
	from := 0
	var before rune
	for i, r := range text {
		ends := strings.ContainsRune(" -_./:,;|#>)", before) && !strings.ContainsRune(" -_./:,;|#>)", r) ||
			unicode.IsLower(before) && unicode.IsUpper(r) || unicode.In(before, wide...)
		if ends && i > from {
			pieces = append(pieces, text[from:i])
			from = i
		}
		before = r
	}
	if from < len(text) {
		pieces = append(pieces, text[from:])
	}
	return pieces
}

// fill puts as many pieces on a line as fit; a piece that is wider than a line is broken.
func fill(pieces []string, size, width int) (b block, broken bool) {
	b.size = size
	line := ""
	end := func() {
		if line = strings.TrimSpace(line); line != "" {
			b.lines = append(b.lines, line)
			b.width = max(b.width, textWidth(line, size))
		}
		line = ""
	}
	for _, piece := range pieces {
		if textWidth(strings.TrimSpace(line+piece), size) > width {
			end()
		}
		if textWidth(strings.TrimSpace(piece), size) <= width {
			line += piece
			continue
		}
		broken = true
		for _, r := range piece {
			if line != "" && textWidth(line+string(r), size) > width {
				end()
			}
			line += string(r)
		}
	}
	end()
	return b, broken
}
