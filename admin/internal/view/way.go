package view

import (
	"slices"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store/state"
)

// wayPart is the shortest run that completes a case.
type wayPart struct {
	Text  string
	Tasks []wayTask
}

// wayTask is a task of the run, with what it waits for.
type wayTask struct {
	Name   string
	State  Cell
	Person bool // a user must act
	Waits  []Cell
}

// way is the tab with the shortest run that completes the case from the shown state.
func (c *casePage) way() wayPart {
	way := why.WayOf(c.tree, c.answer)
	p := wayPart{Text: "The case is " + way.Summary()}
	for _, task := range way.Tasks {
		t := wayTask{Name: task.Task, State: stateOf(task.State)}
		if task.State == state.TaskDisabled.String() {
			t.State.Title = "later"
		}
		t.Person = slices.ContainsFunc(task.Waits, func(w why.Wait) bool { return w.Kind == why.Person || w.Kind == why.Incident })
		for i := range min(len(task.Waits), maxLines) {
			w := &task.Waits[i]
			line := text(printable.Line(plain(w.Words(c.now()))))
			if !w.Item.IsZero() {
				line.Kind, line.Href = "link", c.Link("/items/"+w.Item.String())
			}
			t.Waits = append(t.Waits, line)
		}
		if len(task.Waits) > maxLines {
			t.Waits = append(t.Waits, muted("and more; the tab items has all work items"))
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}
