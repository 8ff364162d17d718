package xmlread

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// toUTF8 decodes the encodings of process models: UTF-8 with or without a byte order mark, UTF-16 with one, and Latin-1
// if the file declares it. Bytes that are not UTF-8 become U+FFFD.
func toUTF8(src, file string) (string, error) {
	switch {
	case strings.HasPrefix(src, "\xef\xbb\xbf"):
		src = src[3:]
	case strings.HasPrefix(src, "\xff\xfe"):
		return fromUTF16(src[2:], 0, 1), nil
	case strings.HasPrefix(src, "\xfe\xff"):
		return fromUTF16(src[2:], 1, 0), nil
	}
	switch enc := declaredEncoding(src); enc {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "utf-16": // a UTF-16 file would have a byte order mark
	case "iso-8859-1", "latin1", "latin-1", "windows-1252", "cp1252", "iso-8859-15":
		return fromLatin1(src), nil
	default:
		return "", &Error{File: file, Line: 1, Code: WrongFormat,
			Text: fmt.Sprintf("the encoding %s is not read; save the file as UTF-8", Quote(enc))}
	}
	if !utf8.ValidString(src) {
		src = strings.ToValidUTF8(src, "\uFFFD")
	}
	return src, nil
}

func declaredEncoding(src string) string {
	if !strings.HasPrefix(src, "<?xml") {
		return ""
	}
	decl, _, ok := strings.Cut(src[:min(len(src), 200)], "?>")
	if !ok {
		return ""
	}
	_, enc, ok := strings.Cut(decl, "encoding")
	if !ok {
		return ""
	}
	enc = strings.Trim(enc, " =\t\r\n")
	if enc == "" || enc[0] != '"' && enc[0] != '\'' {
		return ""
	}
	enc, _, _ = strings.Cut(enc[1:], enc[:1])
	return strings.ToLower(enc)
}

func fromUTF16(src string, low, high int) string {
	units := make([]uint16, 0, len(src)/2)
	for i := 0; i+1 < len(src); i += 2 {
		units = append(units, uint16(src[i+low])|uint16(src[i+high])<<8)
	}
	return string(utf16.Decode(units))
}

func fromLatin1(src string) string {
	var b strings.Builder
	b.Grow(len(src))
	for i := range len(src) {
		b.WriteRune(rune(src[i]))
	}
	return b.String()
}

// unescape replaces character references and XML's five predefined entities. Others are left as written: real labels
// have entities of HTML, and a file that declares its own was refused before.
func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		end := strings.IndexByte(s[:min(len(s), 12)], ';')
		if end < 0 {
			b.WriteByte('&')
			s = s[1:]
			continue
		}
		b.WriteString(entity(s[:end+1]))
		s = s[end+1:]
	}
}

func entity(ref string) string {
	switch name := ref[1 : len(ref)-1]; {
	case name == "lt":
		return "<"
	case name == "gt":
		return ">"
	case name == "amp":
		return "&"
	case name == "quot":
		return `"`
	case name == "apos":
		return "'"
	case strings.HasPrefix(name, "#"):
		digits, base := name[1:], 10
		if strings.HasPrefix(digits, "x") {
			digits, base = digits[1:], 16
		}
		if r, err := strconv.ParseUint(digits, base, 32); err == nil && r <= utf8.MaxRune {
			return string(rune(r))
		}
	}
	return ref
}
