package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// loops counts how often a command enables each task, to find a loop that never waits. It counts a task only from its
// [MaxActivations]-th activation on: a case may loop as often over its life, and only a task with that many generations
// can have reached the bound in one command. So most commands count nothing.
type loops struct {
	enabled map[looping]int // nil until there is something to count
}

// looping identifies a task of a case in all its generations: a loop that never waits makes one after the other.
type looping struct {
	at workitem.CaseID
	t  net.TaskID
}

// count counts an activation, and returns an error for one that can only be part of an endless loop.
func (l *loops) count(c *state.Case, t net.TaskID, generation int) error {
	if generation <= MaxActivations {
		return nil
	}
	if l.enabled == nil {
		l.enabled = make(map[looping]int)
	}
	at := looping{c.ID, t}
	if l.enabled[at]++; l.enabled[at] <= MaxActivations {
		return nil
	}
	return fmt.Errorf("%w: it enabled task %s of %s more than %d times; look for a loop of routing or automatic "+
		"tasks without a way out", ErrRunaway, c.Net.TaskName(t), versioned(c.Workflow, c.Version), MaxActivations)
}
