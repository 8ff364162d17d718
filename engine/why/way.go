package why

import (
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// wayBudget bounds the states of a search.
const wayBudget = 20_000

// Way is the shortest run that completes a case from its present state.
type Way struct {
	Case  workitem.CaseID `json:"case"`
	State string          `json:"state"`
	Tasks []WayTask       `json:"tasks"` // the tasks that complete, in order; empty if there is no such run

	// Found reports whether there is such a run. Decided is false if the search exceeded its budget.
	Found   bool     `json:"found"`
	Decided bool     `json:"decided"`
	Stuck   []string `json:"stuck,omitempty"` // the tasks of a shortest run to a deadlock
	Left    []string `json:"left,omitempty"`  // the marked conditions at the deadlock
}

// WayTask is a task of a [Way].
type WayTask struct {
	Task  string `json:"task"`
	State string `json:"state"`
	Waits []Wait `json:"waits,omitempty"` // what an enabled or started task waits for
}

// WayOf returns the shortest run that completes a case, with the waits of its tasks. The answer must be for that case,
// which must be in the tree. Failures are not considered: a task completes when its work is done.
func WayOf(tree *state.Tree, a *Answer) Way {
	c := tree.Case(a.Case)
	w, run := wayFrom(c)
	seen := make(map[string]bool)
	for _, name := range run {
		at, _ := a.Task(name)
		task := WayTask{Task: name, State: state.TaskDisabled.String()}
		if !seen[name] { // only the first occurrence of a task in a loop
			task.State = at.State
			for _, wait := range a.Of(name) {
				if wait.Kind != Join {
					task.Waits = append(task.Waits, wait)
				}
			}
		}
		seen[name] = true
		w.Tasks = append(w.Tasks, task)
	}
	return w
}

// wayFrom returns a way without its tasks, whose names are in run.
func wayFrom(c *state.Case) (w Way, run []string) {
	w = Way{Case: c.ID, State: c.State.String(), Tasks: []WayTask{}, Decided: true}
	if c.State.Final() {
		w.Found = c.State == state.CaseCompleted
		return w, nil
	}
	var busy []net.TaskID
	c.Busy().Each(func(t int) { busy = append(busy, net.TaskID(t)) })
	way := verify.WayFrom(c.Net, c.Marking, busy, wayBudget)
	w.Found, w.Decided, w.Stuck, w.Left = way.Run != nil, way.Decided, way.Stuck, way.Left
	return w, way.Run
}

// Summary returns the state of the case, and how it ends, as the end of a sentence: "started, and completes after 2 tasks:".
func (w *Way) Summary() string {
	var b strings.Builder
	b.WriteString(w.State)
	switch {
	case w.State != state.CaseStarted.String():
	case !w.Decided:
		b.WriteString(", and whether it can end is not known: the search was given up")
	case !w.Found:
		b.WriteString(", and " + w.deadlock() + "; move a token, or cancel the case")
	default:
		fmt.Fprintf(&b, ", and completes after %s:", printable.Plural(len(w.Tasks), "task"))
	}
	return b.String()
}

// deadlock describes a way to a deadlock: "cannot end: after review, nothing can happen with tokens in approved".
func (w *Way) deadlock() string {
	line := "cannot end: "
	if len(w.Stuck) > 0 {
		line += "after " + strings.Join(w.Stuck, ", ") + ", "
	}
	return line + "nothing can happen with tokens in " + strings.Join(w.Left, ", ")
}

// String returns the way as text, a line for each task.
func (w *Way) String() string {
	var b strings.Builder
	b.WriteString("case " + w.Case.String() + " is " + w.Summary())
	for _, t := range w.Tasks {
		b.WriteString("\n  " + t.Task)
		for i := range t.Waits {
			b.WriteString("\n    " + strings.ReplaceAll(t.Waits[i].Text, "\n", "\n    "))
		}
	}
	return b.String()
}
