package xmlread

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
)

// Attr is an attribute as written, its name with the prefix.
type Attr struct {
	Name, Value string
}

// Element is one element of a file. Its name has no prefix: real files have various prefixes, and often do not declare
// them.
type Element struct {
	Name  string // local name: "place" for <pnml:place>
	Text  string // the character data directly inside, without surrounding space
	Line  int    // of its start tag, from 1
	Attrs []Attr

	first, last, next *Element
	src               *string // the whole file
	start, end        int32   // the position of the element in it
}

// All yields the children in order.
func (e *Element) All() iter.Seq[*Element] {
	return func(yield func(*Element) bool) {
		for c := e.first; c != nil; c = c.next {
			if !yield(c) {
				return
			}
		}
	}
}

// Named yields the children with a name, in order.
func (e *Element) Named(name string) iter.Seq[*Element] {
	return func(yield func(*Element) bool) {
		for c := e.first; c != nil; c = c.next {
			if c.Name == name && !yield(c) {
				return
			}
		}
	}
}

// Child returns the first child with a name, or nil.
func (e *Element) Child(name string) *Element {
	for c := e.first; c != nil; c = c.next {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// FirstChild returns the first child element, or nil. With [Element.Next] a tree can be walked without recursion, which
// is necessary since files can be deep.
func (e *Element) FirstChild() *Element { return e.first }

// Next returns the element that follows in the same parent, or nil.
func (e *Element) Next() *Element { return e.next }

// HasChildren reports whether there is a child element.
func (e *Element) HasChildren() bool { return e.first != nil }

// Attr returns the value of an attribute with the given name, or else of one with that name after a prefix; "" if it is
// missing.
func (e *Element) Attr(name string) string {
	for i := range e.Attrs {
		if e.Attrs[i].Name == name {
			return e.Attrs[i].Value
		}
	}
	for i := range e.Attrs {
		if full := e.Attrs[i].Name; strings.HasSuffix(full, name) && len(full) > len(name) &&
			full[len(full)-len(name)-1] == ':' && !strings.HasPrefix(full, "xmlns:") {
			return e.Attrs[i].Value
		}
	}
	return ""
}

// ID returns the attribute "id" without surrounding space.
func (e *Element) ID() string { return strings.TrimSpace(e.Attr("id")) }

// String returns `place "p1"`, or `<place>` for an element without an id.
func (e *Element) String() string {
	if id := e.ID(); id != "" {
		return e.Name + " " + Quote(id)
	}
	return "<" + e.Name + ">"
}

const maxRaw = 2 << 10

// Raw returns the element as written, cut to 2 KiB. It shares nothing with the file.
func (e *Element) Raw() string {
	s := (*e.src)[e.start:max(e.start, e.end)]
	if len(s) > maxRaw {
		s = strings.ToValidUTF8(s[:maxRaw], "")
	}
	return strings.Clone(s)
}

// Quote returns a name in quotes on one line, cut to 80 bytes, so that errors are readable for any file.
func Quote(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}

// Label returns a text as one display line: runs of space and control characters become one space, and a text of more
// than 1000 bytes is cut and ends with "…".
func Label(s string) string {
	if len(s) > 4096 {
		s = s[:4096]
	}
	fields := strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	})
	s = strings.Join(fields, " ")
	if len(s) > 1000 {
		s = strings.ToValidUTF8(s[:1000], "") + "…"
	}
	return s
}
