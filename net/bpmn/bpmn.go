// Package bpmn reads the processes of BPMN 2.0 models.
//
// Each process of a file, and so each pool of a collaboration, becomes a [net.Definition], and so does each sub-process.
// The mapping follows Dijkman, Dumas and Ouyang (2008), with joins and splits instead of the many transitions that a plain
// net needs:
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
// Messages between pools join their processes to one more net. Data, lanes and layout cannot be represented in a net; the
// [Report] lists each with its line. It has the text of whatever decides how a process runs, such as the condition of a
// flow or the duration of a timer.
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
	MaxNodes int    // elements and attributes, which are what memory goes into; 1 048 576 by default
}

// Result is what a file holds.
type Result struct {
	Nets []Net // each process before its sub-processes, one at least
	// Collaborations are the processes of pools that exchange messages, joined: one net for each group of such pools. They
	// say nothing that Nets do not say too, but how the pools go together; see [Net].
	Collaborations []Net
	Report         Report // what came across differently
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
	Label      string            // the name of the pool or sub-process, for people; empty if it has none
	Labels     map[string]string // the name for people by the name in the net, where there is one and it is different
	IDs        map[string]string // the id in the file by the name in the net
	// Flows gives what is written at a flow, by the names of its two ends: its name in the file, or else its condition,
	// or "otherwise" for the default.
	Flows map[[2]string]string
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

// Error is one reason to refuse a file. It has File, Line, Code, Element and Text (a sentence).
type Error = xmlread.Error

// Errors is the refusal of a file, with every reason; one at least.
type Errors = xmlread.Errors

// Code names a kind of [Error] or [Note].
type Code = xmlread.Code

// The codes of errors.
const (
	Malformed   = xmlread.Malformed   // not well-formed XML, or cut short
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
	Approximated = xmlread.Approximated // read as something that behaves a little differently
	// LeftOut is what is missing from the net: flows without a source or a target or across the border of a process or
	// sub-process, events attached to no activity, what no path leads to, compensation.
	LeftOut        = xmlread.LeftOut
	MultiInstance  = xmlread.MultiInstance  // several instances or a loop, how many is not known: read as one or more
	Disconnected   = xmlread.Disconnected   // a process in which nothing can begin, or nothing ends
	UnknownElement = xmlread.UnknownElement // an element that BPMN does not have
)

// Decode reads every process of a file. The error is an [*Error], [Errors] if there may be several reasons, or that of the
// reader itself. errors.As finds the first [*Error] in either.
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
	events    map[string]*xmlread.Element // event definitions beside the processes, by id
	pools     map[string]string           // id of a process -> name of its pool
	workflows xmlread.Namer
	names     map[*xmlread.Element]string // of the workflows of processes and sub-processes
	byProcess map[string]*scope           // by id
	members   int                         // of all cancellation regions so far
	rounds    map[*xmlread.Element]string // the workflows of activities that run several times
	messages  []*xmlread.Element          // the message flows
	pool      *xmlread.Element            // the collaboration that holds them
	joint     *joint                      // the collaboration that is being joined; nil otherwise
}

func (d *decoder) pos(line int) net.Pos { return net.Pos{File: d.file, Line: line} }

func (d *decoder) refuse(code Code, el *xmlread.Element, text string) *Error {
	return &Error{File: d.file, Line: el.Line, Code: code, Element: el.String(), Text: text}
}

// refuseToo adds to the reasons why the file is refused, and reading goes on to find the others.
func (d *decoder) refuseToo(code Code, el *xmlread.Element, text string) {
	d.refusals = append(d.refusals, d.refuse(code, el, text))
}

func (d *decoder) note(code Code, el *xmlread.Element, text string) {
	d.result.Report.Add(Note{Code: code, Line: el.Line, Element: el.String(), Text: text})
}

// noteRaw is for elements whose content a person may want to see.
func (d *decoder) noteRaw(code Code, el *xmlread.Element, element, text string) {
	d.result.Report.Add(Note{Code: code, Line: el.Line, Element: element, Text: text, Raw: el.Raw()})
}
