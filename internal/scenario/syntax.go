package scenario

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/net"
)

// CodeSyntax is the code of every [SyntaxError], as a scenario prints it: "error: syntax".
const CodeSyntax = "syntax"

// maxErrors bounds what a reader collects, so that a wrong kind of file (a picture, a log) costs no more than a right
// one.
const maxErrors = 1000

// SyntaxError is one place in a text that its form forbids.
type SyntaxError struct {
	File string // as given to the reader; "" if it is unknown
	Line int    // counted from 1; 0 if it is unknown
	Text string // the offending word, and what was expected instead
}

// Error returns "file:12: text" with the last element of the file's path, "line 12: text" without a file, or the text
// alone if the place is unknown.
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

// SyntaxErrors is every syntax error of a text, in the order of its lines. A reader stops collecting after a thousand,
// and says so in the last one. errors.As finds a [*SyntaxError] in it.
type SyntaxErrors []*SyntaxError

// Error lists every error on a line of its own.
func (e SyntaxErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one.
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

// full reports whether no further error is collected.
func (e SyntaxErrors) full() bool { return len(e) > maxErrors }

// addf appends an error, and after the last one that is collected a note that says so.
func (e *SyntaxErrors) addf(at net.Pos, format string, args ...any) {
	switch {
	case len(*e) < maxErrors:
		*e = append(*e, &SyntaxError{File: at.File, Line: at.Line, Text: fmt.Sprintf(format, args...)})
	case len(*e) == maxErrors:
		text := fmt.Sprintf("more than %d errors; the rest was not read", maxErrors)
		*e = append(*e, &SyntaxError{File: at.File, Line: at.Line, Text: text})
	}
}

// syntaxf is an error without a place, for a text that is not known to be part of a file.
func syntaxf(format string, args ...any) error {
	return &SyntaxError{Text: fmt.Sprintf(format, args...)}
}

// byteOrderMark begins files of some editors. In UTF-8 it says nothing, and is left out.
const byteOrderMark = "\ufeff"

// mustBeText refuses a text that begins as one in UTF-16 does, which a shell's redirection may have made of it,
// one whose lines end in a carriage return alone, which would be a single line here, and what is no text at all.
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

// IsName reports whether s may name a workflow, a task, a condition or a case: a letter or an underscore, then letters,
// digits, underscores and hyphens, all ASCII.
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

// quote shows a word in an error, and only the beginning of a long one.
func quote(word string) string {
	const most = 40
	if len(word) > most {
		return fmt.Sprintf("%q...", word[:most])
	}
	return fmt.Sprintf("%q", word)
}

// hint ends an error about an unknown word: with the known word that it resembles, or else with all of them.
func hint(word string, known []string) string {
	if best := spelling.Closest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "expected " + anyOf(known)
}

// anyOf lists words for a person: "a, b or c".
func anyOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
