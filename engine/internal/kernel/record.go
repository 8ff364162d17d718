package kernel

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// record is the tree that a command works on and the changes that it makes, with what their entry in the journal has
// beside them: the time and the actor. The kernel changes nothing in any other way, so the journal rebuilds exactly what
// the command saw.
type record struct {
	tree    *state.Tree
	now     time.Time
	by      string
	ids     IDs // of what the changes open
	changes []state.Change
	opened  *state.Case // the case that the command has opened last; nil if it has opened none
}

// prepare prepares the record of a command. It reuses the memory of the one before.
func (r *record) prepare(tree *state.Tree, now time.Time, by string, ids IDs) {
	clear(r.changes)
	*r = record{tree: tree, now: now, by: by, ids: ids, changes: r.changes[:0]}
}

// emit applies a change to the tree and records it for the journal. A change that cannot be applied is a bug of the
// kernel or a corrupt tree, never an error of the caller.
func (r *record) emit(e state.Change) error {
	if err := r.tree.Apply(e); err != nil {
		return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	r.changes = append(r.changes, e)
	return nil
}

// note records a text about a task, or about its case if the task is -1.
func (r *record) note(id workitem.CaseID, t net.TaskID, code, text string) error {
	return r.emit(&state.Noted{Case: id, Task: t, Code: code, Text: text})
}

// endOf returns a step that has ended in this command, as it is now; nil if it did not. The store does not have its end
// yet, and the tree has only steps that wait.
func (r *record) endOf(s *workitem.Step) *workitem.Step {
	for _, e := range r.changes {
		if moved, ok := e.(*state.StepMoved); ok && moved.Step == s.ID && moved.To.Final() {
			ended := *s
			ended.State, ended.Result, ended.Failure, ended.Ended = moved.To, moved.Result, moved.Failure, moved.At
			return &ended
		}
	}
	return nil
}
