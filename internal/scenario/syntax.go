package scenario

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
)

// CodeSyntax is the code of every [SyntaxError], as a scenario prints it: "error: syntax".
const CodeSyntax = "syntax"

// maxErrors bounds the number of collected errors, so that a file of another kind, such as a picture, takes no more
// time than a valid one.
const maxErrors = 1000

// SyntaxError is a syntax error at one position of a text.
type SyntaxError struct {
	File string // as given to the parser; "" if it is unknown
	Line int    // from 1; 0 if it is unknown
	Text string // the invalid word, and what is valid instead
}

// Error returns "file:12: text" with the last element of the file's path, "line 12: text" without a file, or the text
// alone if the position is unknown.
func (e *SyntaxError) Error() string {
	switch {
	case e.File != "":
		return net.Pos{File: e.File, Line: e.Line}.String() + ": " + e.Text
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Text)
	}
	return e.Text
}

// Code returns [CodeSyntax].
func (e *SyntaxError) Code() string { return CodeSyntax }

// SyntaxErrors are the syntax errors of a text, in the order of its lines. After a thousand errors there are no more,
// and the last one says so. errors.As finds a [*SyntaxError] in it.
type SyntaxErrors []*SyntaxError

// Error returns the errors, one per line.
func (e SyntaxErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (e SyntaxErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}

// asError returns nil for an empty list: a nil slice in an error interface would not be a nil error.
func (e SyntaxErrors) asError() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// full reports whether no further errors are collected.
func (e SyntaxErrors) full() bool { return len(e) > maxErrors }

// addf adds an error, and a note after the last error that is collected.
func (e *SyntaxErrors) addf(at net.Pos, format string, args ...any) {
	switch {
	case len(*e) < maxErrors:
		*e = append(*e, &SyntaxError{File: at.File, Line: at.Line, Text: fmt.Sprintf(format, args...)})
	case len(*e) == maxErrors:
		text := fmt.Sprintf("more than %d errors; the rest was not read", maxErrors)
		*e = append(*e, &SyntaxError{File: at.File, Line: at.Line, Text: text})
	}
}

// syntaxf returns an error without a position, for a text that may not be part of a file.
func syntaxf(format string, args ...any) error {
	return &SyntaxError{Text: fmt.Sprintf(format, args...)}
}

// byteOrderMark begins files of some editors. It has no meaning in UTF-8, and is skipped.
const byteOrderMark = "\ufeff"

// mustBeText rejects a text that begins like one in UTF-16, which a redirection in some shells creates, a text whose
// lines end with a carriage return only, and binary data.
func mustBeText(at net.Pos, text string) error {
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return SyntaxErrors{{File: at.File, Line: at.Line, Text: "the text is in UTF-16; save it in UTF-8"}}
	}
	if n := strings.IndexByte(text, 0); n >= 0 {
		line := at.Line + strings.Count(text[:n], "\n")
		return SyntaxErrors{{File: at.File, Line: line, Text: "this is no text: there is a byte of zero in it"}}
	}
	if strings.ContainsRune(strings.TrimRight(text, "\r"), '\r') && !strings.ContainsRune(text, '\n') {
		return SyntaxErrors{{File: at.File, Line: at.Line,
			Text: "the lines end in a carriage return alone; end them in a line feed"}}
	}
	return nil
}

// IsName reports whether s is a valid name of a workflow, a task, a condition or a case: a letter or an underscore,
// then letters, digits, underscores and hyphens, all ASCII.
func IsName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// quote quotes a word for an error; of a long word it has only the beginning.
func quote(word string) string {
	const most = 40
	if len(word) > most {
		return fmt.Sprintf("%q...", word[:most])
	}
	return fmt.Sprintf("%q", word)
}

// hint returns the end of an error about an unknown word: the known word that it resembles, or otherwise all known
// words.
func hint(word string, known []string) string {
	if best := spelling.Closest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "expected " + anyOf(known)
}

// anyOf formats a list: "a, b or c".
func anyOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
