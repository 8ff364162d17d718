package verify

import (
	"fmt"
	"strings"
)

// Witness is a run that shows a finding: the steps from the start of a case, and what is marked after them. It is a
// shortest one unless Long is set. The engine can replay it: each step is a command on a task.
type Witness struct {
	Steps   []Step
	Marking []Tokens // what is marked in the end, in the order of the conditions
	Busy    []string // tasks that are started and not completed in the end, in the order of their definition
	// Repeats says that the last so many steps can be repeated without end, and add tokens each time. It is 0 for other
	// findings, and where tokens pile up in several stages, of which a later one lives on what an earlier one has piled
	// up.
	Repeats int
	// Long says that the run is not known to be a shortest one: the state space was too large to search it whole.
	Long bool
}

// Step is one step of a witness: a task that starts and completes, or does one of the two, with the choices made.
type Step struct {
	Task    string
	Moment  Moment
	Input   string   // the condition that an xor-join with several inputs takes its token from, else ""
	Outputs []string // where an xor- or or-split goes, each as the author wrote the flow: a task or a condition
	Routing bool     // the task is a routing task, which the engine runs by itself
}

// Moment says which part of a task's life a step is. The zero value is the whole.
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

// Brief is String with at most so many steps: the first ones, and how many there are more.
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
