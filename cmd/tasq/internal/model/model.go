// Package model reads a model file in any format that Tasq knows: net notation, the define commands of a scenario,
// PNML, YAWL and BPMN. [Open] and [Read] detect the format from the content; the extension alone never decides, since
// models come as .xml, as .txt or without any.
//
//	begins with <                 PNML, YAWL or BPMN, by the name of the root element
//	is a zip archive              YAWL, as some editors save it
//	has a line ---- or ends .txt  a scenario: every workflow that it defines
//	is any other text             net notation
//
// The result is the same for all formats: a [File] with [Net] values, and a report of the elements that could not be
// represented. The package only reads: it verifies nothing (see package check), and files larger than MaxBytes are
// refused.
package model

import (
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/bpmn"
	"github.com/tasq-dev/tasq/net/pnml"
)

// Format is the format of a model.
type Format uint8

// The formats. The zero value is net notation.
const (
	Notation Format = iota // the text of package scenario
	Scenario               // a scenario file, of which only the define commands are read
	PNML
	YAWL
	BPMN
)

// String returns "net notation", "scenario", "PNML", "YAWL" or "BPMN".
func (f Format) String() string {
	return [...]string{"net notation", "scenario", "PNML", "YAWL", "BPMN"}[min(f, BPMN)]
}

// File is what a model file holds.
type File struct {
	Name   string // the name given to the reader
	Format Format
	Nets   []Net // in the order of the file, at least one
	// Collaborations are nets that join other nets of the file: the processes of pools that exchange messages. Nets has
	// their parts too. Only BPMN has them.
	Collaborations []Net
	Report         Report // what was read differently; empty for text
}

// All lists the nets of the file, followed by the collaborations.
func (f *File) All() []*Net {
	all := make([]*Net, 0, len(f.Nets)+len(f.Collaborations))
	for _, nets := range [][]Net{f.Nets, f.Collaborations} {
		for i := range nets {
			all = append(all, &nets[i])
		}
	}
	return all
}

// Find returns the first net with a name, or else the first with that label; nil if there is neither.
func Find(nets []*Net, name string) *Net {
	for _, n := range nets {
		if n.Name == name {
			return n
		}
	}
	for _, n := range nets {
		if n.Label == name && name != "" {
			return n
		}
	}
	return nil
}

// Names lists the names of nets in order.
func Names(nets []*Net) []string {
	names := make([]string, len(nets))
	for i, n := range nets {
		names[i] = n.Name
	}
	return names
}

// Definitions lists the workflows of the file, without the nets that are not workflows.
func (f *File) Definitions() []*net.Definition {
	var ds []*net.Definition
	for i := range f.Nets {
		if d := f.Nets[i].Definition; d != nil {
			ds = append(ds, d)
		}
	}
	return ds
}

// Net is one net of a file, before it is checked.
type Net struct {
	Name string // unique in the file, unless a text uses a name twice
	// Definition is the workflow. It is nil only for a PNML net that is not a workflow, as the report says.
	Definition *net.Definition
	// Petri is the net as it is in a PNML file, which is what is verified. It is nil for every other format, and for a
	// file that Tasq wrote, whose definition has more information.
	Petri *net.Petri
	// Workflow has the further content of the notation; nil for a format that is not text.
	Workflow *scenario.Workflow
	Root     bool              // false for a sub-process, or a net that a composite task runs
	Label    string            // the display name; empty if there is none
	Labels   map[string]string // the display names of tasks and conditions, by the name in the net; may be nil
	IDs      map[string]string // the ids in the file, by the name in the net, if they differ; may be nil
	// Flows are the labels of flows, by the names of both ends: the conditions for choosing them; may be nil.
	Flows map[[2]string]string
	// Unnamed are generated names, of elements without a name in the file or that the reader adds; may be nil.
	Unnamed map[string]bool
}

// Problems returns the reasons why the definition is not well-formed, and those in the text; see
// [net.Definition.Check]. It is nil if there is no definition.
func (n *Net) Problems() []net.Problem {
	if n.Definition == nil {
		return nil
	}
	problems := n.Definition.Check()
	if n.Workflow != nil {
		problems = append(problems, n.Workflow.Problems()...)
	}
	return problems
}

// Report lists what was read differently: the fields Notes and Omitted, and a String method with a line for each.
type Report = pnml.Report

// Error is a reason to refuse a file that is not text: File, Line, Code, Element and Text. For text it is a
// [scenario.SyntaxErrors].
type Error = pnml.Error

// Errors is the error of a file with several such reasons.
type Errors = bpmn.Errors
