package integrity

import (
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
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

// states checks the invariants between two commands, for the cases that the last one changed, and for their children.
func (c *checker) states(e *store.Entry, tree *state.Tree, d state.Dirty) {
	for _, k := range d.Cases {
		c.state(e, k)
		c.under(e, tree, k)
		for _, id := range k.Children {
			if child := tree.Case(id); child != nil {
				c.under(e, tree, child)
			}
		}
	}
}

// state checks the invariants of a single case.
func (c *checker) state(e *store.Entry, k *state.Case) {
	for it := range k.Items.All() {
		t, _ := k.Net.TaskByName(it.Task) // a tree refuses items of unknown tasks
		task := k.Tasks[t]
		live := it.State.Live()
		if live && (it.Generation != task.Generation || !task.State.Active() || k.State.Final()) {
			c.breach("I5", "journal entry %d: item %s (%s) of case %s is %s, its task is %s in activation %d, its case %s",
				e.Seq, it.Label(), it.ID, k.ID, it.State, task.State, task.Generation, k.State)
		}
		if it.State == workitem.Started && (task.State != state.TaskStarted || !k.Begun) {
			c.breach("I10", "journal entry %d: item %s of case %s is started, its task is %s", e.Seq, it.Label(), k.ID, task.State)
		}
	}
	for j := range k.Jobs.All() {
		if k.State.Final() && !j.Detached {
			c.breach("I5", "journal entry %d: job %s of case %s is %s, and the case is %s", e.Seq, j.ID, k.ID, j.State, k.State)
		}
		if it := k.Item(j.Item); it != nil && it.State.Final() && j.Kind != state.JobIncident {
			c.breach("I5", "journal entry %d: job %s is %s, and its item %s is %s", e.Seq, j.ID, j.State, it.Label(), it.State)
		}
	}
	c.waits(e, k)
}

// under checks the invariants between a child case and its parent.
func (c *checker) under(e *store.Entry, tree *state.Tree, k *state.Case) {
	parent := tree.Case(k.Parent)
	if parent == nil {
		return
	}
	if !k.Caller.IsZero() {
		c.called(e, parent, k)
		return
	}
	t, _ := parent.Net.TaskByName(k.ParentTask)
	if k.State == state.CaseStarted && (!parent.Tasks[t].State.Active() || parent.Tasks[t].Generation != k.Generation) {
		c.breach("I5", "journal entry %d: case %s is started, and its task %s is %s in activation %d",
			e.Seq, k.ID, k.ParentTask, parent.Tasks[t].State, parent.Tasks[t].Generation)
	}
	if k.Begun && !parent.Begun {
		c.breach("I10", "journal entry %d: case %s has begun, and the case above it has not", e.Seq, k.ID)
	}
}

// waits checks the invariants of steps between two commands.
func (c *checker) waits(e *store.Entry, k *state.Case) {
	waiting := make(map[workitem.JobID]bool)
	for s := range k.Steps.All() {
		waiting[s.Job] = true
		if k.Job(s.Job) == nil {
			c.breach("S1", "journal entry %d: step %q of case %s waits, and its job %s has ended", e.Seq, s.Name, k.ID, s.Job)
		}
	}
	for j := range k.Jobs.All() {
		if j.State == state.JobWaiting && !waiting[j.ID] && j.Kind != state.JobIncident && j.Kind != state.JobStart {
			c.breach("S1", "journal entry %d: job %s of case %s waits for nothing", e.Seq, j.ID, k.ID)
		}
	}
}

// called checks a child case that a step runs.
func (c *checker) called(e *store.Entry, parent, k *state.Case) {
	if k.State.Final() {
		return
	}
	for s := range parent.Steps.All() {
		if s.Child == k.ID {
			return
		}
	}
	c.breach("S3", "journal entry %d: case %s is live, and no step of case %s waits for it", e.Seq, k.ID, k.Parent)
}
