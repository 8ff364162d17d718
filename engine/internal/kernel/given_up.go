package kernel

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// GivenUp is a work item that is not tried again, of a task whose definition says where such items go.
type GivenUp struct {
	Attempts []*workitem.Item  // the oldest first, the item is the last; up to workflow.MaxLetterAttempts
	Failure  *workitem.Failure // the last one; nil if it has no words
	To       *workflow.Definition
}

// GivenUp lists the work items that the command gave up, in order.
func (m *Machine) GivenUp() []GivenUp { return m.dead }

// The letter is a case of its own, which the executor of the command starts in the same transaction, after the kernel is done with the
// case that gave up: the kernel works on one tree, and a letter has another one.

// giveUpItem notes that an item is given up, if its task says where such items go. Its attempts are collected now: if the task is
// enabled again by the same command, the case holds them no longer.
func (m *Machine) giveUpItem(c *state.Case, spec *workflow.Task, it *workitem.Item, f *workitem.Failure) {
	if spec.DeadLetter != nil {
		m.dead = append(m.dead, GivenUp{Attempts(c, it), f, spec.DeadLetter})
	}
}

// Attempts lists an item and those that it replaces, the oldest first, up to workflow.MaxLetterAttempts of them. Of nil it is empty.
func Attempts(c *state.Case, last *workitem.Item) (all []*workitem.Item) {
	for it := last; it != nil && len(all) < workflow.MaxLetterAttempts; it = c.Item(it.Predecessor) {
		all = append(all, it)
	}
	slices.Reverse(all)
	return all
}

// DeadLetter notes with a case, or a task of it, which case its dead letter is.
func (m *Machine) DeadLetter(id workitem.CaseID, task, text string) error {
	at := net.TaskID(-1)
	if t, ok := m.tree.Case(id).Net.TaskByName(task); ok {
		at = t
	}
	return m.emit(&state.Noted{Case: id, Task: at, Code: state.NoteDeadLetter, Text: text})
}
