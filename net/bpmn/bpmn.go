// Package bpmn reads the processes of BPMN 2.0 models.
//
// Each process of a file, and so each pool of a collaboration, becomes a [net.Definition], and so does each
// sub-process. The mapping follows Dijkman, Dumas and Ouyang (2008), with joins and splits instead of the many
// transitions that a plain net needs:
//
//	task, event            a task; several incoming flows are an xor-join, several outgoing ones an and-split, with
//	                       conditions an or-split
//	exclusive, parallel,   a routing task with an xor, and, or join and split
//	inclusive gateway
//	event-based gateway    a condition that the events behind it share: the first that happens takes the token
//	sub-process,           a composite task. If something is thrown out of it (an error, an escalation, a
//	call activity          cancellation), an xor-split: its normal end, or the catching element
//	event sub-process      a part of the net, which waits as long as the rest runs
//	boundary event         a task that waits beside the activity: each cancels the other
//	terminate end event    a task that cancels everything else of its process or sub-process
//	several start events   a choice; several elements without an incoming flow: all of them
//	several ends           a routing task "finish", whose or-join waits for all that can still arrive
//	loop, multi-instance   a composite task, whose workflow has a task for each instance
//	messages of pools      conditions of one more net, which has all pools that exchange them
//
// Messages between pools join their processes to one more net. Data, lanes and layout cannot be represented in a net;
// the [Report] lists each with its line. It has the text of whatever decides how a process runs, such as the condition
// of a flow or the duration of a timer.
package bpmn

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
	Nets []Net // each process before its sub-processes, at least one
	// Collaborations are the processes of pools that exchange messages: one net for each group of such pools. They add
	// to Nets only how the pools interact; see [Net].
	Collaborations []Net
	Report         Report // what was read differently
}

// Definitions lists the definitions of all nets.
func (r *Result) Definitions() []*net.Definition {
	ds := make([]*net.Definition, len(r.Nets))
	for i := range r.Nets {
		ds[i] = r.Nets[i].Definition
	}
	return ds
}

// Net is one process or sub-process.
type Net struct {
	Definition *net.Definition   // not yet checked; never nil
	Root       bool              // a process; false for a sub-process
	Label      string            // the display name of the pool or sub-process; empty if it has none
	Labels     map[string]string // display names by the name in the net, if they differ
	IDs        map[string]string // the id in the file by the name in the net
	// Flows has the labels of flows, by the names of both ends: the name in the file, or else the condition, or
	// "otherwise" for the default.
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

// Error is a reason to refuse a file. It has File, Line, Code, Element and Text (a sentence).
type Error = xmlread.Error

// Errors are all reasons to refuse a file; at least one.
type Errors = xmlread.Errors

// Code names a kind of [Error] or [Note].
type Code = xmlread.Code

// The codes of errors.
const (
	Malformed   = xmlread.Malformed   // not well-formed XML, or truncated
	WrongFormat = xmlread.WrongFormat // not BPMN
	TooLarge    = xmlread.TooLarge    // beyond a limit
	DuplicateID = xmlread.DuplicateID // two elements share an id
	Empty       = xmlread.Empty       // no process with an element in it
	Unsupported = xmlread.Unsupported // XML entities
)

// The codes of notes.
const (
	NotCarried   = xmlread.NotCarried   // messages, data, lanes, extensions, layout
	Kept         = xmlread.Kept         // conditions of flows and what events wait for, kept word for word
	Closed       = xmlread.Closed       // routing tasks were added at the start or the end
	Approximated = xmlread.Approximated // read as something with slightly different behaviour
	// LeftOut is what is not in the net: flows without a source or a target or across the border of a process or
	// sub-process, events that are attached to no activity, unreachable elements, compensation.
	LeftOut        = xmlread.LeftOut
	MultiInstance  = xmlread.MultiInstance  // a loop, or an unknown number of instances: read as one or more
	Disconnected   = xmlread.Disconnected   // a process that cannot begin, or cannot end
	UnknownElement = xmlread.UnknownElement // an element that BPMN does not have
)

// Decode reads every process of a file. The error is an [*Error], [Errors] if there may be several reasons, or that of
// the reader itself. errors.As finds the first [*Error] in either.
func Decode(r io.Reader, o Options) (*Result, error) {
	root, err := xmlread.Parse(r, xmlread.Options{
		File:   o.File,
		Limits: xmlread.Limits{MaxBytes: o.MaxBytes, MaxDepth: o.MaxDepth, MaxNodes: o.MaxNodes},
		Skip:   func(name string) bool { return name == "BPMNDiagram" },
	})
	if err != nil {
		return nil, err
	}
	d := newDecoder(o.File)
	if err := d.parse(root); err != nil {
		return nil, err
	}
	d.nameAll()
	for _, s := range d.processes {
		if err := d.emit(s, true); err != nil {
			return nil, err
		}
	}
	d.joinPools(root)
	return d.result, nil
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, result: &Result{}, byID: map[string]*node{}, ids: map[string]int{},
		codes: map[string]string{}, events: map[string]*xmlread.Element{}, names: map[*xmlread.Element]string{},
		byProcess: map[string]*scope{}, rounds: map[*xmlread.Element]string{}}
}

type decoder struct {
	file      string
	result    *Result
	processes []*scope
	byID      map[string]*node
	elements  int            // flow nodes and flows so far
	ids       map[string]int // line of every element of a process
	refusals  xmlread.Errors
	codes     map[string]string           // id of an error or escalation -> its code
	events    map[string]*xmlread.Element // event definitions outside of processes, by id
	pools     map[string]string           // id of a process -> name of its pool
	workflows xmlread.Namer
	names     map[*xmlread.Element]string // of the workflows of processes and sub-processes
	byProcess map[string]*scope           // by id
	members   int                         // of all cancellation regions so far
	rounds    map[*xmlread.Element]string // the workflows of activities that run several times
	messages  []*xmlread.Element          // the message flows
	pool      *xmlread.Element            // the collaboration of the message flows
	joint     *joint                      // the collaboration in progress; nil otherwise
}

func (d *decoder) pos(line int) net.Pos { return net.Pos{File: d.file, Line: line} }

func (d *decoder) refuse(code Code, el *xmlread.Element, text string) *Error {
	return &Error{File: d.file, Line: el.Line, Code: code, Element: el.String(), Text: text}
}

// refuseToo adds a reason to refuse the file; reading continues, to find further ones.
func (d *decoder) refuseToo(code Code, el *xmlread.Element, text string) {
	d.refusals = append(d.refusals, d.refuse(code, el, text))
}

func (d *decoder) note(code Code, el *xmlread.Element, text string) {
	d.result.Report.Add(Note{Code: code, Line: el.Line, Element: el.String(), Text: text})
}

// noteRaw adds a note with the content of the element.
func (d *decoder) noteRaw(code Code, el *xmlread.Element, element, text string) {
	d.result.Report.Add(Note{Code: code, Line: el.Line, Element: element, Text: text, Raw: el.Raw()})
}
