package why

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
)

// MaxAlike is how many waits of the same kind and task the text of an answer lists.
const MaxAlike = 10

// Alike are waits of one kind for one task, for the same reason.
type Alike struct {
	Workflow string
	Task     string // "" for a wait of a case as a whole
	Kind     Kind
	Blocked  Block
	N        int // how many
}

// String says how many there are, and of what.
func (a Alike) String() string {
	of := a.Workflow
	if a.Task != "" {
		of = "task " + a.Task + " of " + a.Workflow
	}
	reason := string(a.Kind)
	if a.Blocked != "" {
		reason += ", " + string(a.Blocked)
	}
	return fmt.Sprintf("%d more of %s (%s)", a.N, of, reason)
}

// alike returns what a wait has in common with others. Those behind others in a queue are like the first one.
func (w *Wait) alike() Alike {
	a := Alike{Workflow: w.Workflow, Task: w.Task, Kind: w.Kind, Blocked: w.Blocked}
	if a.Blocked == Behind {
		a.Blocked = ""
	}
	return a
}

// Brief returns at most so many waits of each kind and task, in their order, and counts the others. So a case with a thousand child
// cases has a short answer, in which an incident of one of them is not lost.
func (a *Answer) Brief(most int) (shown []*Wait, others []Alike) {
	there, at := make(map[Alike]int), make(map[Alike]int)
	for i := range a.Waits {
		like := a.Waits[i].alike()
		if there[like]++; there[like] <= most {
			shown = append(shown, &a.Waits[i])
			continue
		}
		if there[like] == most+1 {
			at[like] = len(others)
			others = append(others, like)
		}
		others[at[like]].N++
	}
	return shown, others
}

// writeWaits writes a line for each wait, with its commands below it, or a line for many.
func (a *Answer) writeWaits(b *strings.Builder) {
	shown, others := a.Brief(MaxAlike)
	for _, w := range shown {
		b.WriteString("\n  " + strings.ReplaceAll(w.Text, "\n", "\n  "))
		for _, c := range w.Commands {
			b.WriteString("\n    " + c)
		}
	}
	for _, o := range others {
		b.WriteString("\n  and " + o.String())
	}
	if a.More > 0 {
		fmt.Fprintf(b, "\n  and %d more", a.More)
	}
	if len(others) > 0 {
		b.WriteString("\n  tasq why " + a.Case.String() + " -o json lists them")
		if a.More > 0 {
			fmt.Fprintf(b, ", up to %d", MaxWaits)
		}
	}
}

// String returns the answer as text: a line for the case, and one for each wait, at most [MaxAlike] of the same kind and task.
func (a *Answer) String() string {
	var b strings.Builder
	b.WriteString(printable.Line(a.head()))
	a.writeWaits(&b)
	for i := range a.Holds {
		b.WriteString("\n" + printable.Line(a.Holds[i].Text))
	}
	return b.String()
}

// inLine is a text without line breaks, which would read as the lines of other waits. That of a join has lines of its own, and only names
// of the net.
func (w *Wait) inLine(text string) string {
	if w.Kind == Join {
		return text
	}
	return printable.Line(text)
}
