// Package printable makes text that comes from outside safe to print: names, messages and payloads may hold control
// characters, which a terminal takes for commands, and direction characters, which show a line in another order than it
// has. Every output of the command passes through it: [Line] and [Lines] for people, [Encoder] and [XML] for programs.
package printable

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line replaces what is not printable: a space for each space, tab and line break, and U+FFFD for everything else.
func Line(s string) string { return strings.Map(shown, s) }

// Lines is [Line] for a text of several lines: line breaks and tabs stay.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return shown(r)
	}, text)
}

func shown(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || unicode.Is(unicode.Zs, r):
		return ' '
	case !unicode.IsPrint(r):
		return unicode.ReplacementChar
	}
	return r
}

// Encoder writes values as JSON, one a line unless it indents. Control and direction characters in them are written as
// \u escapes: programs read the same strings, and a terminal that shows the output takes nothing in it for a command.
type Encoder struct {
	w      io.Writer
	indent string
}

// NewEncoder returns an encoder that writes to w.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

// Indent has the encoder write each element on a line of its own, indented by so many copies of the text as it lies
// deep. It returns the encoder.
func (e *Encoder) Indent(text string) *Encoder {
	e.indent = text
	return e
}

// Encode writes one value and a line break. Characters that matter in HTML alone stay as they are, since names such as
// A->B are to be read by people too.
func (e *Encoder) Encode(v any) error {
	var b bytes.Buffer
	plain := json.NewEncoder(&b)
	plain.SetEscapeHTML(false)
	plain.SetIndent("", e.indent)
	if err := plain.Encode(v); err != nil {
		return err
	}
	_, err := e.w.Write(escape(b.Bytes()))
	return err
}

// escape writes the characters of a JSON text that [hidden] finds as \u escapes. In a JSON text they occur within
// strings only. A byte that is no UTF-8 becomes U+FFFD.
func escape(text []byte) []byte {
	if bytes.IndexFunc(text, hidden) < 0 {
		return text
	}
	escaped := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r > 0xFFFF && hidden(r):
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		case hidden(r):
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = utf8.AppendRune(escaped, r)
		}
		text = text[size:]
	}
	return escaped
}

// XML writes a text as the value of an attribute, or between tags, of an XML document. What [hidden] finds is written as references to
// characters, and what XML cannot have as U+FFFD.
func XML(w io.Writer, text string) error {
	var plain, escaped bytes.Buffer
	if err := xml.EscapeText(&plain, []byte(text)); err != nil {
		return err
	}
	for _, r := range plain.String() {
		if hidden(r) {
			fmt.Fprintf(&escaped, "&#x%X;", r)
			continue
		}
		escaped.WriteRune(r)
	}
	_, err := w.Write(escaped.Bytes())
	return err
}

// hidden reports whether a character is not shown but acts on what is: the control characters C0, DEL and C1, the
// separators of lines and paragraphs, and all of the category "format" (directions, joiners, tags, U+FEFF). The line
// break that ends a value stays.
func hidden(r rune) bool {
	switch {
	case r == '\n':
		return false
	case r < 0x7F:
		return r < 0x20
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
