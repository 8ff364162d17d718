package xmlread

import (
	"strconv"
	"strings"
)

// Namer generates unique names that are valid in net notation, [A-Za-z_][A-Za-z0-9_-]*. The zero value is ready for
// use.
type Namer struct {
	used map[string]int // name -> the last number that was appended
}

const maxName = 100

// Name returns the first of the wanted texts that has a letter or digit in it, as a name: other characters become "_",
// and a number is appended if the name is taken.
func (n *Namer) Name(wanted ...string) string {
	for _, w := range wanted {
		if s := Slug(w); s != "" {
			return n.unique(s)
		}
	}
	return n.unique("x")
}

func (n *Namer) unique(s string) string {
	if n.used == nil {
		n.used = map[string]int{}
	}
	last, taken := n.used[s]
	if !taken {
		n.used[s] = 1
		return s
	}
	for i := last + 1; ; i++ {
		name := s + "_" + strconv.Itoa(i)
		if _, taken := n.used[name]; !taken {
			n.used[s], n.used[name] = i, 1
			return name
		}
	}
}

// Slug converts a text to a name, or to "" if no character of it is valid in one.
func Slug(text string) string {
	var b strings.Builder
	gap, useful := false, false
	for i := 0; i < min(len(text), 4096) && b.Len() < maxName; i++ {
		c := text[i]
		if !isNameByte(c) {
			gap = b.Len() > 0 || gap
			continue
		}
		if gap {
			b.WriteByte('_')
			gap = false
		}
		if b.Len() == 0 && (c == '-' || c >= '0' && c <= '9') {
			b.WriteByte('_')
		}
		useful = useful || c != '_' && c != '-'
		b.WriteByte(c)
	}
	if !useful {
		return ""
	}
	return b.String()
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
