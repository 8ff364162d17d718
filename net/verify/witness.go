package verify

import (
	"fmt"
	"strings"
)

// Witness is a run that shows a finding: the steps from the start of a case, and the marking after them. It is a
// shortest one unless Long is set. The engine can replay it: each step is a command on a task.
type Witness struct {
	Steps   []Step
	Marking []Tokens // the marking after the last step, in the order of the conditions
	Busy    []string // tasks that are started at the end, in the order of their definition
	// Repeats is the number of last steps that can be repeated without end, and add tokens each time. It is 0 for other
	// findings, and if tokens pile up in several stages, each of which uses tokens that the one before has piled up.
	Repeats int
	// Long says that there may be a shorter run: the state space was too large for a complete search.
	Long bool
}

// Step is one step of a witness: a task that starts, completes, or does both, with its choices.
type Step struct {
	Task    string
	Moment  Moment
	Input   string   // the condition from which an xor-join with several inputs takes its token, else ""
	Outputs []string // the flows that an xor- or or-split chooses, as the author wrote them: tasks or conditions
	Routing bool     // a routing task, which the engine executes by itself
}

// Moment is the part of a task's execution that a step represents. The zero value is all of it.
type Moment uint8

// The moments of a task.
const (
	Whole     Moment = iota // starts and completes at once
	Starts                  // starts, and is busy afterwards
	Completes               // completes what an earlier step started
)

// Tokens is the marking of one condition.
type Tokens struct {
	Condition string
	Count     int
}

// String describes the step in a few words: "start B", "A to C, D".
func (s Step) String() string {
	var b strings.Builder
	switch s.Moment {
	case Starts:
		b.WriteString("start ")
	case Completes:
		b.WriteString("complete ")
	}
	b.WriteString(s.Task)
	if len(s.Outputs) > 0 {
		b.WriteString(" to " + strings.Join(s.Outputs, ", "))
	}
	return b.String()
}

// String describes the run on one line: "A to B; B; then end 1, A->C 1".
func (w *Witness) String() string { return w.Brief(len(w.Steps)) }

// Brief is like String, with only the first steps, and the number of the others.
func (w *Witness) Brief(most int) string {
	var b strings.Builder
	for _, s := range w.Steps[:min(most, len(w.Steps))] {
		b.WriteString(s.String() + "; ")
	}
	if more := len(w.Steps) - most; more > 0 {
		fmt.Fprintf(&b, "%d steps more; ", more)
	}
	if len(w.Steps) == 0 {
		b.WriteString("at the start, ")
	} else {
		b.WriteString("then ")
	}
	for i, t := range w.Marking {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", t.Condition, t.Count)
	}
	for i, t := range w.Busy {
		if i > 0 || len(w.Marking) > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t + " busy")
	}
	if len(w.Marking)+len(w.Busy) == 0 {
		b.WriteString("nothing is marked")
	}
	return b.String()
}
