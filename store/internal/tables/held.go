package tables

import (
	"iter"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Held has what cases hold in memory beside their rows. Its methods read a row, and add it to that of its case.
type Held map[workitem.CaseID]*held

type held struct {
	items    []*workitem.Item
	jobs     []*state.Job
	steps    []*workitem.Step
	messages []*state.Message
}

// NewHeld returns an empty one for these cases.
func NewHeld(cases []*state.Case) Held {
	all := make(Held, len(cases))
	for _, c := range cases {
		all[c.ID] = new(held)
	}
	return all
}

// of returns what a case holds. That of another case is an orphaned row, which the integrity check reports.
func (h Held) of(id workitem.CaseID) *held {
	if found := h[id]; found != nil {
		return found
	}
	return new(held)
}

// Item reads an item.
func (h Held) Item(r *Row) error {
	it, err := ReadItem(r)
	if err == nil {
		of := h.of(it.Case)
		of.items = append(of.items, it)
	}
	return err
}

// Job reads a job.
func (h Held) Job(r *Row) error {
	j, err := ReadJob(r)
	if err == nil {
		of := h.of(j.Case)
		of.jobs = append(of.jobs, j)
	}
	return err
}

// Step reads a step.
func (h Held) Step(r *Row) error {
	s, err := ReadStep(r)
	if err == nil {
		of := h.of(s.Case)
		of.steps = append(of.steps, s)
	}
	return err
}

// Message reads a message.
func (h Held) Message(r *Row) error {
	m, err := ReadMessage(r)
	if err == nil {
		of := h.of(m.Case)
		of.messages = append(of.messages, m)
	}
	return err
}

// Load gives the cases what was read. The rows of each kind were read in the order of their ids, in which a tree keeps them.
func (h Held) Load(cases []*state.Case) {
	for _, c := range cases {
		of := h[c.ID]
		c.Load(of.items, of.jobs)
		c.LoadWaits(of.steps, of.messages)
	}
}

// LatestActivations yields the tasks of a case that may have items, with the number of their latest activation. A task that was
// never enabled, or is not atomic, has none. The items of earlier activations have ended, and are not part of a tree.
func LatestActivations(c *state.Case) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for t := range c.Tasks {
			if c.Tasks[t].Generation > 0 && c.Net.Task(net.TaskID(t)).Kind == net.Atomic && !yield(c.Net.TaskName(net.TaskID(t)), c.Tasks[t].Generation) {
				return
			}
		}
	}
}
