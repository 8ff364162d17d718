package net

import (
	"fmt"
	"path/filepath"
)

// Definition is a net as its author wrote it: names in the order of their declaration, flows in the order in which
// they are tried. It is plain data, so a reader of any format can fill one; [Compile] turns it into a [Net].
//
// The zero value is an empty definition, which [Definition.Check] refuses for lack of a start and an end.
type Definition struct {
	Name       string      // name of the workflow, as shown in problems
	Conditions []Condition // explicit conditions, the start and the end among them
	Tasks      []Task
	Flows      []Flow
	Pos        Pos // where the workflow was declared
}

// Condition is an explicit place of the net. A flow from task to task makes an implicit one, which is not listed.
type Condition struct {
	Name string
	Role Role
	Pos  Pos
}

// Role says what a condition is for.
type Role uint8

// The roles of a condition. The zero value is an ordinary one.
const (
	Inner Role = iota // an ordinary condition
	Start             // holds the first token of a case; exactly one a net
	End               // a token in it completes the case; exactly one a net
)

// Task is a transition of the net.
type Task struct {
	Name    string
	Kind    Kind
	Join    Rule     // how inputs are combined; And by default
	Split   Rule     // how outputs are chosen; And by default
	Cancels []string // the cancellation region: tasks and conditions (an implicit one as "A->B")
	Of      []string // the workflows whose cases a composite task runs
	Pos     Pos
}

// Kind says what happens between the start and the completion of a task.
type Kind uint8

// The kinds of task. The zero value is an atomic one.
const (
	Atomic    Kind = iota // owns work items
	Routing               // owns nothing, and runs to its end when enabled
	Composite             // owns child cases
)

// Rule says how a join combines the inputs of a task, or how a split chooses its outputs.
type Rule uint8

// The rules. The zero value is And.
const (
	And Rule = iota
	Xor
	Or
)

// String returns "and", "xor" or "or".
func (r Rule) String() string {
	switch r {
	case And:
		return "and"
	case Xor:
		return "xor"
	case Or:
		return "or"
	}
	return fmt.Sprintf("rule(%d)", uint8(r))
}

// Flow is an arc between two named elements. Between two tasks it stands for an implicit condition, see [ImplicitName].
type Flow struct {
	From, To string
	Pos      Pos
}

// ImplicitName is the name of the condition that a flow from one task to another makes: "A->B".
func ImplicitName(from, to string) string { return from + "->" + to }

// Pos is a place in a source file. The zero value means that the place is unknown.
type Pos struct {
	File string
	Line int
}

// IsZero reports whether the place is unknown.
func (p Pos) IsZero() bool { return p.File == "" && p.Line == 0 }

// String returns "file:line" with the last element of the file's path, or "" for an unknown place.
func (p Pos) String() string {
	if p.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Base(p.File), p.Line)
}
