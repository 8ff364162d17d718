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
	MaxNodes int    // elements and attributes, which are what memory goes into; 1 048 576 by default
}

// Result is what a file holds.
type Result struct {
	Nets   []Net  // in the order of the file, one at least
	Report Report // what came across differently
}

// Definitions lists the workflows of the file, without the nets that none could be made of.
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
	// Petri is the net as it stands in the file. It is nil only for a file of [Encode] whose gates have no plain
	// equivalent, see [Unfold].
	Petri *net.Petri
	// Definition is the workflow made of it, not yet checked; nil if none could be made, which the report explains.
	Definition *net.Definition
	// Own says that [Encode] wrote the net. Then Definition is what was written, and Petri only unfolds it.
	Own bool
	// Label is the name of the net in the file, for people; empty if it has none.
	Label string
	// Labels gives the name for people, by the name in the net, where the file has one and it is different.
	Labels map[string]string
	// IDs gives the id in the file, by the name in the net, where it is different.
	IDs map[string]string
	// Unnamed are the names that stand for no name in the file: made of ids, or given to what the reader adds. In a net
	// that names no element, the ids count as names.
	Unnamed map[string]bool
}

// Report lists what came across differently, see [Note]: it has the fields Notes and Omitted (a count of notes beyond
// the first 10 000), and a String method that gives a line for each.
type Report = xmlread.Report

// Note says how one element of the file differs in the net: Code, Line, Element, Text (a sentence), and Raw (the
// element as written, where its content is of use).
type Note = xmlread.Note

// Error is the refusal of a file. It has File, Line, Code, Element and Text (a sentence).
type Error = xmlread.Error

// Code names a kind of [Error] or [Note].
type Code = xmlread.Code

// The codes of errors.
const (
	Malformed   = xmlread.Malformed   // not well-formed XML, or cut short, or a number that is none
	WrongFormat = xmlread.WrongFormat // not PNML
	TooLarge    = xmlread.TooLarge    // beyond a limit
	DuplicateID = xmlread.DuplicateID // two elements of a net share an id
	UnknownRef  = xmlread.UnknownRef  // an arc or reference names nothing that exists
	Empty       = xmlread.Empty       // no net, or a net without nodes
	Unsupported = xmlread.Unsupported // coloured nets and inhibitor arcs: leaving those out would change the net
)

// The codes of notes.
const (
	NotCarried   = xmlread.NotCarried   // other tools' annotations, final markings
	Closed       = xmlread.Closed       // a start, an end or a routing task was added to the definition
	Approximated = xmlread.Approximated // read as something that behaves a little differently
	LeftOut      = xmlread.LeftOut      // an arc that moves no token
	Isolated     = xmlread.Isolated     // a place without any arc, which is missing from the definition
	PlainOnly    = xmlread.PlainOnly    // no definition could be made
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
	workflows xmlread.Namer // names of the nets, so that each can be distinguished from the others
	result    *Result
}

func (d *decoder) pos(line int) net.Pos { return net.Pos{File: d.file, Line: line} }

func (d *decoder) refuse(code Code, el *xmlread.Element, text string) *Error {
	return &Error{File: d.file, Line: el.Line, Code: code, Element: el.String(), Text: text}
}

func (d *decoder) note(code Code, line int, element, text string) {
	d.result.Report.Add(Note{Code: code, Line: line, Element: element, Text: text})
}

// findNets lists the nets of a file wherever they lie: directly inside the root, or in modules.
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
