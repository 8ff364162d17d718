package integrity

import (
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// states checks the invariants between two commands. An entry is checked in time that depends on what it changed, not on the size of the
// case: a case of ten thousand items has an entry for each of them, at least. What depends on the state of a case or of its tasks is checked
// as a whole when that state changes, see [moved]; everything else with the item, job, step or child case that changed.
func (c *checker) states(e *store.Entry, f *family, d state.Dirty) {
	whole := make(map[workitem.CaseID]bool)
	for i, k := range d.Cases {
		c.under(e, f, k)
		if moved(d.Was[i], k) {
			whole[k.ID] = true
			c.whole(e, f, k)
		}
	}
	for _, it := range d.Items {
		k := f.tree.Case(it.Case)
		if k == nil || whole[k.ID] || k.Item(it.ID) == nil {
			continue
		}
		c.item(e, k, it)
		for id := range f.jobsOf[it.ID] {
			if j := k.Job(id); j != nil {
				c.job(e, k, j)
			}
		}
	}
	for _, j := range d.Jobs {
		k := f.tree.Case(j.Case)
		if k == nil {
			continue
		}
		if !whole[k.ID] && k.Job(j.ID) != nil {
			c.job(e, k, j)
		}
		c.waits(e, f, k, j.ID)
	}
	c.waiting(e, f, d)
}

// moved reports whether the state of a case or of one of its tasks changed; was is nil for a new case.
func moved(was, k *state.Case) bool {
	if was == nil || was.State != k.State || was.Begun != k.Begun {
		return true
	}
	return !slices.EqualFunc(was.Tasks, k.Tasks, func(a, b state.Task) bool { return a.State == b.State && a.Generation == b.Generation })
}

// whole checks everything of a case against the states of the case and of its tasks.
func (c *checker) whole(e *store.Entry, f *family, k *state.Case) {
	for it := range k.Items.All() {
		c.item(e, k, it)
	}
	for j := range k.Jobs.All() {
		c.job(e, k, j)
	}
	for id := range f.live[k.ID] {
		if child := f.tree.Case(id); child != nil {
			c.under(e, f, child)
		}
	}
}

// item checks an item against its task and its case.
func (c *checker) item(e *store.Entry, k *state.Case, it *workitem.Item) {
	c.report.looked++
	t, _ := k.Net.TaskByName(it.Task) // a tree refuses items of unknown tasks
	task := k.Tasks[t]
	if it.State.Live() && (it.Generation != task.Generation || !task.State.Active() || k.State.Final()) {
		c.breach("I5", "journal entry %d: item %s (%s) of case %s is %s, its task is %s in activation %d, its case %s",
			e.Seq, it.Label(), it.ID, k.ID, it.State, task.State, task.Generation, k.State)
	}
	if it.State == workitem.Started && (task.State != state.TaskStarted || !k.Begun) {
		c.breach("I10", "journal entry %d: item %s of case %s is started, its task is %s", e.Seq, it.Label(), k.ID, task.State)
	}
}

// job checks a live job against its item and its case.
func (c *checker) job(e *store.Entry, k *state.Case, j *state.Job) {
	c.report.looked++
	if k.State.Final() && !j.Detached {
		c.breach("I5", "journal entry %d: job %s of case %s is %s, and the case is %s", e.Seq, j.ID, k.ID, j.State, k.State)
	}
	if it := k.Item(j.Item); it != nil && it.State.Final() && j.Kind != state.JobIncident {
		c.breach("I5", "journal entry %d: job %s is %s, and its item %s is %s", e.Seq, j.ID, j.State, it.Label(), it.State)
	}
}

// under checks the invariants between a child case and its parent.
func (c *checker) under(e *store.Entry, f *family, k *state.Case) {
	c.report.looked++
	parent := f.tree.Case(k.Parent)
	if parent == nil {
		return
	}
	if !k.Caller.IsZero() {
		c.called(e, f, parent, k)
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

// waiting checks the jobs and the child cases of the steps that changed.
func (c *checker) waiting(e *store.Entry, f *family, d state.Dirty) {
	changed := make(map[workitem.JobID]bool, len(d.Jobs))
	for _, j := range d.Jobs {
		changed[j.ID] = true
	}
	for _, s := range d.Steps {
		k := f.tree.Case(s.Case)
		if k == nil {
			continue
		}
		if !changed[s.Job] {
			changed[s.Job] = true
			c.waits(e, f, k, s.Job)
		}
		if child := f.tree.Case(s.Child); child != nil {
			c.called(e, f, k, child)
		}
	}
}

// waits checks a job against its waiting steps.
func (c *checker) waits(e *store.Entry, f *family, k *state.Case, id workitem.JobID) {
	c.report.looked++
	steps, j := f.waiting[id], k.Job(id)
	switch {
	case j == nil:
		for _, s := range steps {
			c.breach("S1", "journal entry %d: step %q of case %s waits, and its job %s has ended", e.Seq, s.Name, k.ID, id)
		}
	case j.State == state.JobWaiting && len(steps) == 0 && j.Kind != state.JobIncident && j.Kind != state.JobStart:
		c.breach("S1", "journal entry %d: job %s of case %s waits for nothing", e.Seq, id, k.ID)
	}
}

// called checks a child case that a step runs.
func (c *checker) called(e *store.Entry, f *family, parent, k *state.Case) {
	if s := f.callers[k.ID]; !k.State.Final() && (s == nil || s.Case != parent.ID) {
		c.breach("S3", "journal entry %d: case %s is live, and no step of case %s waits for it", e.Seq, k.ID, k.Parent)
	}
}
