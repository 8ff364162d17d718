package net

import (
	"errors"
	"strings"
)

// Code names a kind of [Problem]. Codes are stable: scenario files, scripts and editors rely on them.
type Code string

// The codes of well-formedness problems.
const (
	NoStart              Code = "no-start"               // no start condition
	NoEnd                Code = "no-end"                 // no end condition
	DuplicateStart       Code = "duplicate-start"        // a second start condition
	DuplicateEnd         Code = "duplicate-end"          // a second end condition
	DuplicateName        Code = "duplicate-name"         // two elements share a name
	UnknownName          Code = "unknown-name"           // a flow, region or composite names nothing that exists
	ConditionToCondition Code = "condition-to-condition" // a flow between two conditions
	FlowIntoStart        Code = "flow-into-start"
	FlowOutOfEnd         Code = "flow-out-of-end"
	Unreachable          Code = "unreachable"    // no path from the start
	NoPathToEnd          Code = "no-path-to-end" // no path to the end
	NoFlowIn             Code = "no-flow-in"
	NoFlowOut            Code = "no-flow-out"
	RecursiveComposite   Code = "recursive-composite" // a composite task that runs its own workflow again
	RoutingCycle         Code = "routing-cycle"       // a cycle of routing tasks alone would never end
)

// ProblemCodes lists the codes of what makes a definition not well-formed, sorted. A [RoutingCycle] is among them,
// though it does not keep a net from being compiled.
func ProblemCodes() []Code {
	return []Code{
		ConditionToCondition, DuplicateEnd, DuplicateName, DuplicateStart, FlowIntoStart, FlowOutOfEnd, NoEnd, NoFlowIn,
		NoFlowOut, NoPathToEnd, NoStart, RecursiveComposite, RoutingCycle, UnknownName, Unreachable,
	}
}

// Problem is one thing that is wrong with a definition. It names the element, where that was declared, and, where two
// parties are at odds, the other one and its place.
type Problem struct {
	Code    Code
	Subject string // the element: a name, or a flow as "A->B"
	Text    string // one sentence for a person, without the code and the subject's place
	Pos     Pos    // where the subject was declared
	Other   Pos    // where the other party was declared, if there is one
}

// String returns the problem on one line: "file:12: no-flow-out: task "pack" has no flow out".
func (p Problem) String() string {
	var b strings.Builder
	if s := p.Pos.String(); s != "" {
		b.WriteString(s + ": ")
	}
	b.WriteString(string(p.Code) + ": " + p.Text)
	if s := p.Other.String(); s != "" {
		b.WriteString(" (" + s + ")")
	}
	return b.String()
}

// Error is the refusal of a definition: all its problems at once, sorted by code and subject.
type Error struct {
	Workflow string
	Problems []Problem
}

// Error lists every problem on a line of its own.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, "workflow "+e.Workflow+" is not well-formed:")
	for _, p := range e.Problems {
		lines = append(lines, "\t"+p.String())
	}
	return strings.Join(lines, "\n")
}

// ErrUndecided says that a question about a net needs more search than its budget allows.
var ErrUndecided = errors.New("net: the search budget ran out before the question was decided")
