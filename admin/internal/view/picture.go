package view

import (
	"fmt"
	"html/template"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
	"github.com/tasq-dev/tasq/store/state"
)

// picturePart is the net of a case with its tokens, and the same in words.
type picturePart struct {
	SVG   template.HTML
	Tasks []Cell
}

// picture draws a case.
func (c *casePage) picture() (picturePart, error) {
	var p picturePart
	marks := make(map[string]svg.Mark)
	for t := range c.c.Tasks {
		name := c.c.Net.TaskName(net.TaskID(t))
		m, words := mark(c, net.TaskID(t))
		if m.Class != "" {
			m.Href = c.Link("/items", "case", c.c.ID.String(), "task", name)
		}
		marks[name] = m
		p.Tasks = append(p.Tasks, labeled(name, text(words)))
	}
	var err error
	p.SVG, err = draw(c.c.Net, svg.Options{Title: c.c.Workflow + ", case " + c.c.ID.String(), Marking: c.c.Marking, Busy: c.c.Busy(), Marks: marks})
	return p, err
}

// mark says how a task of a case stands: by a color and an outline, a sign, and in words.
func mark(c *casePage, t net.TaskID) (svg.Mark, string) {
	task := &c.c.Tasks[t]
	name := c.c.Net.TaskName(t)
	m := svg.Mark{}
	words := task.State.String()
	tally := c.c.Items.Tally(name, task.Generation)
	if c.c.Net.Task(t).Kind == net.Composite {
		tally = c.tree.ChildTally(c.c.ID, name, task.Generation)
	}
	all := tally.Initialized + tally.Started + tally.Completed + tally.Failed + tally.Canceled
	switch task.State {
	case state.TaskEnabled:
		m.Class, m.Badge = "t-open", fmt.Sprint(max(all, 1))
	case state.TaskStarted:
		m.Class, m.Badge = "t-busy", sign("running")
		if all > 1 {
			m.Badge = fmt.Sprintf("%d/%d", tally.Completed, all)
			words += fmt.Sprintf(", %d of %d completed", tally.Completed, all)
		}
	case state.TaskCompleted:
		m.Class, m.Badge = "t-done", sign("completed")
	case state.TaskFailed:
		m.Class, m.Badge = "t-bad", sign("failed")
	case state.TaskCanceled:
		m.Badge = sign("canceled")
		if task.Lost {
			m.Class = "t-bad"
		}
	default:
		if task.Generation == 0 {
			words = "not yet"
		} else {
			words = "withdrawn"
		}
	}
	if task.Generation > 1 {
		words += fmt.Sprintf(", activation %d", task.Generation)
	}
	waiting(c, name, &m, &words)
	m.Title = name + ": " + words
	return m, words
}

// waiting adds what the task waits for, where that is another attempt, a decision or a token.
func waiting(c *casePage, name string, m *svg.Mark, words *string) {
	for _, w := range c.answer.Of(name) {
		switch w.Kind {
		case why.Retry:
			m.Class, m.Badge = "t-retry", fmt.Sprintf("%s %d", sign("retry"), w.Attempt)
		case why.Incident, why.Stuck:
			m.Class, m.Badge = "t-bad", sign("incident")
		case why.Join:
			if m.Class == "" {
				m.Class, m.Badge = "t-join", sign("join")
			}
		default:
			continue
		}
		*words += "; " + plain(w.Text)
	}
}
