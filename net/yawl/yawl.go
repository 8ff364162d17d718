// Package yawl reads YAWL specifications: the engine's XML in all its schemas, from Beta 2 to 4.0, and the files of
// editors up to 2.0.
//
// Each net of a specification becomes a [net.Definition], the root net first. Conditions, tasks, joins, splits and
// cancellation sets mean the same in both languages. A task that decomposes to a net is a composite task; a task
// without a decomposition is a routing task, since YAWL's engine runs it without a work item. The flows of a split are
// in the order in which their predicates are evaluated, the default flow last.
//
// The [Report] lists everything that a net cannot represent: predicates, instances and timers
// with their text, and everything about data, resources and layout as not carried.
package yawl

import (
	"io"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// Options says how to read a file. The zero value reads within the default limits.
type Options struct {
	File     string // name of the file, for positions and errors; empty by default
	MaxBytes int64  // size of the input in bytes, and of its decompressed content; 64 MiB by default
	MaxDepth int    // elements inside one another; 512 by default
	MaxNodes int    // elements and attributes, which use most of the memory; 1 048 576 by default
}

// Result is the content of a file.
type Result struct {
	Nets   []Net  // the root net of each specification before its other nets, at least one
	Report Report // what was read differently
}

// Definitions lists the definitions of all nets.
func (r *Result) Definitions() []*net.Definition {
	ds := make([]*net.Definition, len(r.Nets))
	for i := range r.Nets {
		ds[i] = r.Nets[i].Definition
	}
	return ds
}

// Net is one net of a specification.
type Net struct {
	Definition *net.Definition   // not yet checked; never nil
	Root       bool              // a case of the specification begins with it
	Label      string            // the display name of the net in the file; empty if it has none
	Labels     map[string]string // display names by the name in the net, if they differ
	IDs        map[string]string // ids in the file by the name in the net, if they differ
	// Flows has the conditions of flows as text, by the names of both ends: the predicate, or "otherwise".
	Flows map[[2]string]string
	// Unnamed are generated names, of elements without a name in the file or that the reader adds. In a net without any
	// names, ids count as names.
	Unnamed map[string]bool
}

// Report lists what was read differently, see [Note]: it has the fields Notes and Omitted (the number of notes beyond
// the first 10 000), and a String method with a line for each.
type Report = xmlread.Report

// Note says how one element of the file differs in the net: Code, Line, Element, Text (a sentence), and Raw (the
// element as written, where its content is of use).
type Note = xmlread.Note

// Error is the reason to refuse a file. It has File, Line, Code, Element and Text (a sentence).
type Error = xmlread.Error

// Code names a kind of [Error] or [Note].
type Code = xmlread.Code

// The codes of errors.
const (
	Malformed   = xmlread.Malformed   // not well-formed XML, or truncated, or a damaged archive
	WrongFormat = xmlread.WrongFormat // not a YAWL specification
	TooLarge    = xmlread.TooLarge    // beyond a limit
	DuplicateID = xmlread.DuplicateID // two elements of a net, or two nets, share an id
	UnknownRef  = xmlread.UnknownRef  // a flow, a cancellation set or a decomposition names nothing that exists
	Empty       = xmlread.Empty       // no net, or a net without elements
	Unsupported = xmlread.Unsupported // the file declares XML entities
)

// The codes of notes.
const (
	NotCarried     = xmlread.NotCarried     // data, resources, services, layout
	Kept           = xmlread.Kept           // predicates and timers, kept word for word
	Closed         = xmlread.Closed         // a routing task was added between two conditions
	LeftOut        = xmlread.LeftOut        // a member of a cancellation set that is no condition, a loose flow
	MultiInstance  = xmlread.MultiInstance  // a task with several instances, read as one task
	UnknownElement = xmlread.UnknownElement // an element that no schema has
)

// Decode reads every net of a file. The error is an [*Error], or that of the reader itself.
func Decode(r io.Reader, o Options) (*Result, error) {
	src, err := xmlread.ReadAll(r, o.File, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(src, "PK\x03\x04") {
		if src, err = unzip(src, o); err != nil {
			return nil, err
		}
	}
	src, rest := cutBeans(src)
	root, err := xmlread.ParseString(src, xmlread.Options{
		File:   o.File,
		Limits: xmlread.Limits{MaxBytes: o.MaxBytes, MaxDepth: o.MaxDepth, MaxNodes: o.MaxNodes},
	})
	if err != nil {
		return nil, err
	}
	d := &decoder{file: o.File, result: &Result{}}
	if rest > 0 {
		d.note(NotCarried, rest, "the file", "it goes on after its end with the rest of an older, longer version", nil)
	}
	specs, err := d.specifications(root)
	if err != nil {
		return nil, err
	}
	for _, s := range specs {
		if err := d.addSpecification(s); err != nil {
			return nil, err
		}
	}
	return d.result, nil
}

type decoder struct {
	file      string
	workflows xmlread.Namer
	result    *Result
}

// specifications reads the relevant parts of a file in either format.
func (d *decoder) specifications(root *xmlread.Element) ([]*specification, error) {
	switch root.Name {
	case "specificationSet":
		return d.engineFile(root)
	case "java":
		return d.editorFile(root)
	}
	text := "the root of a YAWL file is <specificationSet>"
	if kind := map[string]string{"definitions": "BPMN", "pnml": "PNML"}[root.Name]; kind != "" {
		text += "; this looks like " + kind
	}
	return nil, d.refuse(WrongFormat, root, text)
}

func (d *decoder) pos(line int) net.Pos { return net.Pos{File: d.file, Line: line} }

func (d *decoder) refuse(code Code, el *xmlread.Element, text string) *Error {
	return &Error{File: d.file, Line: el.Line, Code: code, Element: el.String(), Text: text}
}

// note adds a note on an element; raw is the element whose content it is about, nil if the text has it.
func (d *decoder) note(code Code, line int, element, text string, raw *xmlread.Element) {
	n := Note{Code: code, Line: line, Element: element, Text: text}
	if raw != nil {
		n.Raw = raw.Raw()
	}
	d.result.Report.Add(n)
}
