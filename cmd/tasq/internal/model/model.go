// Package model reads a model file in any format that Tasq knows: net notation, the define commands of a scenario, PNML, YAWL
// and BPMN. [Open] and [Read] detect the format from the content; the extension alone never decides, since models come as .xml,
// as .txt or without any.
//
//	begins with <                 PNML, YAWL or BPMN, by the name of the root element
//	is a zip archive              YAWL, as some editors save it
//	has a line ---- or ends .txt  a scenario: every workflow that it defines
//	is any other text             net notation
//
// The result is the same for all formats: a [File] with [Net] values, and a report of the elements that could not be represented.
// The package only reads: it verifies nothing (see package check), and files larger than MaxBytes are refused.
package model

import (
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/bpmn"
	"github.com/tasq-dev/tasq/net/pnml"
)

// Format is a format that models are read from.
type Format uint8

// The formats. The zero value is net notation.
const (
	Notation Format = iota // the text of package scenario
	Scenario               // a scenario file, of which only the define commands count
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
	Name   string // as it was given to the reader
	Format Format
	Nets   []Net // in the order of the file, one at least
	// Collaborations are nets that join others of the file: the processes of pools that exchange messages. What they hold
	// stands in Nets too. There are some in BPMN only.
	Collaborations []Net
	Report         Report // what came across differently; empty for text
}

// All lists the nets of the file, and behind them those that join some of them.
func (f *File) All() []*Net {
	all := make([]*Net, 0, len(f.Nets)+len(f.Collaborations))
	for _, nets := range [][]Net{f.Nets, f.Collaborations} {
		for i := range nets {
			all = append(all, &nets[i])
		}
	}
	return all
}

// Find returns the first of some nets that has a name, or that label if none has the name. It returns nil if there is
// neither.
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

// Names lists the names of nets in their order.
func Names(nets []*Net) []string {
	names := make([]string, len(nets))
	for i, n := range nets {
		names[i] = n.Name
	}
	return names
}

// Definitions lists the workflows of the file, without the nets that none could be made of.
func (f *File) Definitions() []*net.Definition {
	var ds []*net.Definition
	for i := range f.Nets {
		if d := f.Nets[i].Definition; d != nil {
			ds = append(ds, d)
		}
	}
	return ds
}

// Net is one net of a file, not yet checked.
type Net struct {
	Name string // different from those of the file's other nets, unless the file is text that says one name twice
	// Definition is the workflow. It is nil only for a net of PNML that no workflow can be made of, as the report says.
	Definition *net.Definition
	// Petri is the net as it stands in a PNML file, and what its verification works on; nil for every other format, and
	// for a file that Tasq itself wrote, of which the definition says more.
	Petri *net.Petri
	// Workflow is what the notation says beyond the net; nil for a format that is not text.
	Workflow *scenario.Workflow
	Root     bool              // a case may begin with it: false for a sub-process or a net that a composite task runs
	Label    string            // the name for people; empty if there is none
	Labels   map[string]string // the names of tasks and conditions for people, by the name in the net; may be nil
	IDs      map[string]string // the ids in the file, by the name in the net, where they are different; may be nil
	// Flows is what is written at flows for people, by the names of both ends: what decides about them; may be nil.
	Flows map[[2]string]string
	// Unnamed are the names that stand for no name in the file: made of ids, or given to what the reader adds; may be nil.
	Unnamed map[string]bool
}

// Problems is what makes the definition not well-formed, and what stands in the text besides it; see
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

// Report lists what came across differently: the fields Notes and Omitted, and a String method with a line for each.
type Report = pnml.Report

// Error is one reason to refuse a file that is no text: File, Line, Code, Element and Text. That of a text is a
// [scenario.SyntaxErrors].
type Error = pnml.Error

// Errors is the refusal of a file for several such reasons.
type Errors = bpmn.Errors
