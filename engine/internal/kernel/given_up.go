package kernel

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// GivenUp is a work item without further attempts whose task has a dead letter.
type GivenUp struct {
	Attempts []*workitem.Item  // the oldest first, the item is the last; up to workflow.MaxLetterAttempts
	Failure  *workitem.Failure // the last one; nil if it has no words
	To       *workflow.Definition
}

// GivenUp returns the work items that the command gave up, in order.
func (m *Machine) GivenUp() []GivenUp { return m.activations.exhausted }

// The letter is a case of its own. The executor of the command starts it in the same transaction, after the kernel has
// finished the case: the kernel works on one tree, and the letter has another one.

// Attempts returns an item and its predecessors, oldest first, at most workflow.MaxLetterAttempts. It returns nothing
// for nil.
func Attempts(c *state.Case, last *workitem.Item) (all []*workitem.Item) {
	for it := last; it != nil && len(all) < workflow.MaxLetterAttempts; it = c.Item(it.Predecessor) {
		all = append(all, it)
	}
	slices.Reverse(all)
	return all
}

// DeadLetter records in the journal of a case, or of one of its tasks, which case its dead letter is.
func (m *Machine) DeadLetter(id workitem.CaseID, task, text string) error {
	at := net.TaskID(-1)
	if t, ok := m.tree.Case(id).Net.TaskByName(task); ok {
		at = t
	}
	return m.note(id, at, state.NoteDeadLetter, text)
}
