package model

import (
	"bytes"
	"strings"
)

// rootOf returns the name of an XML file's root element from its beginning, without a prefix. It is "" if the beginning
// is too short; xml is false if it is not XML. Nothing is validated, since the readers do that.
func rootOf(head []byte) (root string, xml bool) {
	s := string(narrow(head))
	s = strings.TrimLeft(strings.TrimPrefix(s, "\uFEFF"), " \t\r\n")
	if !strings.HasPrefix(s, "<") {
		return "", false
	}
	for strings.HasPrefix(s, "<") {
		end := ">"
		switch {
		case strings.HasPrefix(s, "<!--"):
			end = "-->"
		case strings.HasPrefix(s, "<?"):
			end = "?>"
		case strings.HasPrefix(s, "<!"):
			if open, shut := strings.IndexByte(s, '['), strings.IndexByte(s, '>'); open >= 0 && open < shut {
				_, s, _ = strings.Cut(s, "]") // the document type lists declarations, which end in > themselves
				s = "<" + s
			}
		default:
			return nameOf(s[1:]), true
		}
		_, rest, found := strings.Cut(s[1:], end)
		if !found {
			return "", true
		}
		s = strings.TrimLeft(rest, " \t\r\n")
	}
	return "", true
}

// nameOf returns the name at the beginning of a tag, "" if it does not end there.
func nameOf(tag string) string {
	end := strings.IndexAny(tag, " \t\r\n/>")
	if end < 0 {
		return ""
	}
	name := tag[:end]
	return name[strings.IndexByte(name, ':')+1:]
}

// narrow converts the beginning of a UTF-16 file, whose markup is ASCII, by dropping zero bytes and the byte order
// mark.
func narrow(head []byte) []byte {
	if bytes.HasPrefix(head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(head, []byte{0xFE, 0xFF}) {
		return bytes.ReplaceAll(head[2:], []byte{0}, nil)
	}
	return head
}
