package xmlread

import (
	"fmt"
	"strconv"
	"strings"
)

// Code names a kind of [Error] or [Note]. Codes are stable.
type Code string

// The codes of errors: the whole file is refused.
const (
	Malformed   Code = "malformed"    // not well-formed XML, or truncated
	WrongFormat Code = "wrong-format" // well-formed, yet not a file of this kind
	TooLarge    Code = "too-large"    // beyond a limit of bytes, depth or nodes
	DuplicateID Code = "duplicate-id" // two elements share an id
	UnknownRef  Code = "unknown-ref"  // an arc, flow or reference to something that does not exist
	Empty       Code = "empty"        // nothing in it that could be a net
	Unsupported Code = "unsupported"  // omitting this would change the meaning of the net
)

// The codes of notes: the file is read, but differently.
const (
	NotCarried     Code = "not-carried"     // has no place in a net: data, resources, messages, layout
	Kept           Code = "kept"            // cannot be represented in a net, but affects how it runs; its text is kept
	Closed         Code = "closed"          // a start, an end or a routing task was added
	Approximated   Code = "approximated"    // read as something with slightly different behaviour
	LeftOut        Code = "left-out"        // an element is missing from the net
	Isolated       Code = "isolated"        // an element without any connection, which a definition omits
	MultiInstance  Code = "multi-instance"  // a task for several instances or in a loop, read as one task
	PlainOnly      Code = "plain-only"      // a plain Petri net that cannot be a workflow
	Disconnected   Code = "disconnected"    // on no path from the start to an end
	UnknownElement Code = "unknown-element" // an unknown element
)

// Error is the reason to refuse a file: what is wrong, where, and what to do about it.
type Error struct {
	File    string // as given by the caller, may be empty
	Line    int    // from 1; 0 if the whole file is meant
	Code    Code
	Element string // the element, such as `arc "a7"`; may be empty
	Text    string // one sentence
}

// Error returns "file:12: unknown-ref: arc "a7": its target "p9" is no place or transition".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		b.WriteString(strconv.Itoa(e.Line) + ":")
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(string(e.Code) + ": ")
	if e.Element != "" {
		b.WriteString(e.Element + ": ")
	}
	b.WriteString(e.Text)
	return b.String()
}

// Errors are several reasons to refuse a file, at least one, in the order in which they were found.
type Errors []*Error

// Error returns the reasons, one per line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the reasons.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i := range e {
		all[i] = e[i]
	}
	return all
}

// Note describes how one element of the file differs in the net.
type Note struct {
	Code    Code
	Line    int    // of the element in the file, from 1; 0 for the whole net
	Element string // like `place "p1"`: its kind and its id in the file
	Text    string // one sentence
	Raw     string // the element as written, cut to 2 KiB; set if its content is useful: data, predicates, resources
}

// String returns the note on one line, without its raw content.
func (n Note) String() string {
	s := string(n.Code) + ": " + n.Element + ": " + n.Text
	if n.Line > 0 {
		return strconv.Itoa(n.Line) + ": " + s
	}
	return s
}

// MaxNotes is the number of notes that a report keeps; more are only counted.
const MaxNotes = 10000

// Report has the notes on one file, in the order in which they were found.
type Report struct {
	Notes   []Note
	Omitted int // notes beyond the first 10 000
}

// Add adds a note, or counts it if the report is full: a malicious file must not fill the memory with notes.
func (r *Report) Add(n Note) {
	if len(r.Notes) >= MaxNotes {
		r.Omitted++
		return
	}
	r.Notes = append(r.Notes, n)
}

// Count returns how many notes have the code.
func (r *Report) Count(code Code) int {
	n := 0
	for i := range r.Notes {
		if r.Notes[i].Code == code {
			n++
		}
	}
	return n
}

// String returns one note per line, and a last line for the omitted ones.
func (r *Report) String() string {
	var b strings.Builder
	for _, n := range r.Notes {
		b.WriteString(n.String() + "\n")
	}
	if r.Omitted > 0 {
		b.WriteString(fmt.Sprintf("and %d more\n", r.Omitted))
	}
	return b.String()
}
