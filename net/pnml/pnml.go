// Package pnml reads and writes Petri nets in PNML, the interchange format of ISO/IEC 15909-2.
//
// A PNML file has places, transitions and arcs. For each net in it, [Decode] returns
//
//   - a [net.Petri], the net exactly as it is in the file, with its weights and its initial marking; and
//   - a [net.Definition], the workflow that can run: places are conditions, transitions are tasks with an and-join
//     and an and-split. A workflow needs one start and one end; if the file lacks them, they are added.
//
// So a net with two marked places begins with a routing task "begin" that marks both, and one with several sinks ends
// with a routing task "finish" whose or-join waits until no further sink can be reached. If a net cannot be a workflow,
// for example because of an arc of weight two, there is only the [net.Petri]. The [Report] lists every such step
// with the element and its line.
//
// Reading is lenient, because tools disagree about the format: a net may be in a module or outside any page, namespaces
// may be missing, a number may be in <value> instead of <text>. Writing is strict. [Encode] keeps all of a
// definition in annotations that other tools ignore; reading it again returns the same definition. [Unfold] and
// [EncodePetri] write a net that has the same meaning for every tool.
package pnml

import (
	"io"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// Options says how to read a file. The zero value reads within the default limits.
type Options struct {
	File     string // name of the file, for positions and errors; empty by default
	MaxBytes int64  // size of the input in bytes; 64 MiB by default
	MaxDepth int    // elements inside one another; 512 by default
	MaxNodes int    // elements and attributes, which use most of the memory; 1 048 576 by default
}

// Result is the content of a file.
type Result struct {
	Nets   []Net  // in the order of the file, at least one
	Report Report // what was read differently
}

// Definitions lists the workflows of the file, without the nets that are not workflows.
func (r *Result) Definitions() []*net.Definition {
	var ds []*net.Definition
	for i := range r.Nets {
		if d := r.Nets[i].Definition; d != nil {
			ds = append(ds, d)
		}
	}
	return ds
}

// Net is one net of a file.
type Net struct {
	// Petri is the net as it is in the file. It is nil only for a file of [Encode] whose joins and splits have no plain
	// equivalent, see [Unfold].
	Petri *net.Petri
	// Definition is the workflow for the net, not yet checked; nil if it cannot be one, for a reason in the report.
	Definition *net.Definition
	// Own means that [Encode] wrote the net. Then Definition is what was written, and Petri is its unfolding.
	Own bool
	// Label is the display name of the net in the file; empty if it has none.
	Label string
	// Labels has the display names, by the name in the net, if the file has one that differs.
	Labels map[string]string
	// IDs has the ids in the file, by the name in the net, if they differ.
	IDs map[string]string
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
	Malformed   = xmlread.Malformed   // not well-formed XML, or truncated, or an invalid number
	WrongFormat = xmlread.WrongFormat // not PNML
	TooLarge    = xmlread.TooLarge    // beyond a limit
	DuplicateID = xmlread.DuplicateID // two elements of a net share an id
	UnknownRef  = xmlread.UnknownRef  // an arc or reference names nothing that exists
	Empty       = xmlread.Empty       // no net, or a net without nodes
	Unsupported = xmlread.Unsupported // colored nets, inhibitor arcs, capacities: leaving those out would change the net
)

// The codes of notes.
const (
	Kept         = xmlread.Kept         // a delay of transitions
	NotCarried   = xmlread.NotCarried   // other tools' annotations, final markings
	Closed       = xmlread.Closed       // a start, an end or a routing task was added to the definition
	Approximated = xmlread.Approximated // read as something with slightly different behaviour
	LeftOut      = xmlread.LeftOut      // an arc that moves no token, a net within a net
	Isolated     = xmlread.Isolated     // a place without any arc, which is missing from the definition
	PlainOnly    = xmlread.PlainOnly    // cannot be a workflow
	Disconnected = xmlread.Disconnected // a node on no path from the start to the end

	UnknownElement = xmlread.UnknownElement // an element that PNML does not have
)

// Decode reads every net of a file. The error is an [*Error], or that of the reader itself.
func Decode(r io.Reader, o Options) (*Result, error) {
	root, err := xmlread.Parse(r, xmlread.Options{
		File:   o.File,
		Limits: xmlread.Limits{MaxBytes: o.MaxBytes, MaxDepth: o.MaxDepth, MaxNodes: o.MaxNodes},
		Skip:   func(name string) bool { return name == "graphics" },
	})
	if err != nil {
		return nil, err
	}
	d := &decoder{file: o.File, result: &Result{}}
	nets, err := d.findNets(root)
	if err != nil {
		return nil, err
	}
	for _, el := range nets {
		n, err := d.net(el)
		if err != nil {
			return nil, err
		}
		d.result.Nets = append(d.result.Nets, n)
	}
	return d.result, nil
}

type decoder struct {
	file      string
	workflows xmlread.Namer // names of the nets, to make them unique
	result    *Result
	color     string // of the tokens of the net; "" as long as none is named
}

func (d *decoder) pos(line int) net.Pos { return net.Pos{File: d.file, Line: line} }

func (d *decoder) refuse(code Code, el *xmlread.Element, text string) *Error {
	return &Error{File: d.file, Line: el.Line, Code: code, Element: el.String(), Text: text}
}

func (d *decoder) note(code Code, line int, element, text string) {
	d.result.Report.Add(Note{Code: code, Line: line, Element: element, Text: text})
}

// findNets lists the nets of a file, which are in the root or in modules.
func (d *decoder) findNets(root *xmlread.Element) ([]*xmlread.Element, error) {
	var nets []*xmlread.Element
	open := []*xmlread.Element{root}
	for len(open) > 0 {
		el := open[len(open)-1]
		open = open[:len(open)-1]
		if el.Name == "net" {
			nets = append(nets, el)
			continue
		}
		var inside []*xmlread.Element
		for c := range el.All() {
			inside = append(inside, c)
		}
		for i := len(inside) - 1; i >= 0; i-- {
			open = append(open, inside[i])
		}
		if el.Name == "finalmarkings" {
			d.noteFinalMarkings(el)
		}
	}
	if len(nets) == 0 {
		code, text := Empty, "there is no <net> in it"
		if root.Name != "pnml" {
			code, text = WrongFormat, "the root of a PNML file is <pnml>"
			if kind := map[string]string{"definitions": "BPMN", "specificationSet": "YAWL"}[root.Name]; kind != "" {
				text += "; this looks like " + kind
			}
		}
		return nil, d.refuse(code, root, text)
	}
	return nets, nil
}
