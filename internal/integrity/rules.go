package integrity

import (
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// rules checks an event before it is applied.
func (c *checker) rules(f *family, e *store.Entry, event state.Change) {
	switch event := event.(type) {
	case *state.TaskMoved:
		k := f.tree.Case(event.Case)
		if k == nil {
			c.breach("J2", "journal entry %d moves a task of case %s, which is not there", e.Seq, event.Case)
			return
		}
		if k.State.Final() {
			c.breach("I9", "journal entry %d moves task %s of case %s, which is %s",
				e.Seq, k.Net.TaskName(event.Task), k.ID, k.State)
		}
		c.taskMove(e, k, event)
	case *state.TaskResumed:
		if k := f.tree.Case(event.Case); k == nil || k.State.Final() {
			c.breach("I9", "journal entry %d resumes task %d of case %s, which is not there, or has ended", e.Seq, event.Task, event.Case)
		}
	case *state.CaseSuspended:
		if k := f.tree.Case(event.Case); k == nil || k.State.Final() {
			c.breach("I9", "journal entry %d suspends case %s, which is not there, or has ended", e.Seq, event.Case)
		}
	case *state.Produced:
		if k := f.tree.Case(event.Case); k != nil && k.Tasks[event.Task].State != state.TaskCompleted {
			c.breach("I6", "journal entry %d: task %s of case %s produces tokens, and is %s",
				e.Seq, k.Net.TaskName(event.Task), k.ID, k.Tasks[event.Task].State)
		}
	case *state.RetryChanged:
		if _, it := f.tree.Item(event.Item); it == nil || it.State.Final() {
			c.breach("I9", "journal entry %d gives item %s a retry policy, which is not there, or has ended", e.Seq, event.Item)
		}
	case *state.ItemMoved:
		_, it := f.tree.Item(event.Item) // in its state after an earlier event of the same entry
		if it == nil {
			it = f.items[event.Item]
		}
		if it != nil && it.State.Final() {
			c.breach("I9", "journal entry %d moves item %s, which is %s", e.Seq, it.ID, it.State)
		}
	}
}

// taskMove checks a change of a task's state.
func (c *checker) taskMove(e *store.Entry, k *state.Case, m *state.TaskMoved) {
	task, name := k.Tasks[m.Task], k.Net.TaskName(m.Task)
	if m.To == state.TaskEnabled {
		if m.Generation != task.Generation+1 {
			c.breach("I2", "journal entry %d: task %s of case %s is enabled as %d after %d",
				e.Seq, name, k.ID, m.Generation, task.Generation)
		}
		if task.State.Active() {
			c.breach("I3", "journal entry %d: task %s of case %s is enabled while it is %s", e.Seq, name, k.ID, task.State)
		}
		return
	}
	if m.Generation != task.Generation {
		c.breach("I4", "journal entry %d: activation %d of task %s of case %s moves during %d",
			e.Seq, m.Generation, name, k.ID, task.Generation)
	}
	from := map[state.TaskState][]state.TaskState{
		state.TaskStarted:   {state.TaskEnabled},
		state.TaskDisabled:  {state.TaskEnabled},
		state.TaskCompleted: {state.TaskStarted},
		state.TaskFailed:    {state.TaskStarted},
		state.TaskCanceled:  {state.TaskEnabled, state.TaskStarted},
	}[m.To]
	if !slices.Contains(from, task.State) {
		c.breach("I4", "journal entry %d: task %s of case %s goes from %s to %s", e.Seq, name, k.ID, task.State, m.To)
	}
	if m.To == state.TaskStarted {
		want := k.Net.Consumes(nil, m.Task, k.Marking)
		if !slices.Equal(want, m.Consumed) {
			c.breach("I6", "journal entry %d: task %s of case %s consumes %v instead of %v", e.Seq, name, k.ID, m.Consumed, want)
		}
	}
}
