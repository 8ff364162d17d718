package integrity

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// compare compares the stored state of a family with the rebuilt one.
func (c *checker) compare(f *family) {
	if f.last == 0 || f.removed {
		c.breach("I8", "case %s is in the tables, and the journal has no entry of it, or one that removes it", f.tree.Root)
		return
	}
	c.compareCases(f)
	compareRows(c, f, "item", f.stored.items, f.items, func(it *workitem.Item) workitem.ID { return it.ID }, sameItem)
	compareRows(c, f, "job", f.stored.jobs, f.jobs, func(j *state.Job) workitem.JobID { return j.ID }, sameJob)
	compareRows(c, f, "step", f.stored.steps, f.steps, func(s *workitem.Step) workitem.StepID { return s.ID }, sameStep)
	compareRows(c, f, "event", f.stored.messages, f.messages,
		func(m *state.Message) workitem.MessageID { return m.ID }, sameMessage)
	c.steps(f)
	c.messages(f)
	c.count(f)
}

func (c *checker) compareCases(f *family) {
	for _, got := range f.stored.cases {
		if want := f.tree.Case(got.ID); want != nil {
			c.compareCase(got, want)
		} else {
			c.breach("I8", "case %s is in the tables, and not in the journal of its root case %s", got.ID, f.tree.Root)
		}
	}
	if len(f.stored.cases) != f.tree.Len() {
		c.breach("I7", "the tree of case %s has %d cases in the tables, and %d in the journal",
			f.tree.Root, len(f.stored.cases), f.tree.Len())
	}
}

func (c *checker) compareCase(got, want *state.Case) {
	if got.State != want.State || got.Begun != want.Begun || !slices.Equal(got.Marking, want.Marking) {
		c.breach("I7", "case %s is %s with %s in the tables, and %s with %s in the journal",
			want.ID, got.State, marking(got), want.State, marking(want))
	}
	if got.Fingerprint != want.Fingerprint || len(got.Tasks) != len(want.Tasks) {
		c.breach("I7", "case %s runs on another definition in the tables than in the journal", want.ID)
		return
	}
	for t := range want.Tasks {
		g, w := got.Tasks[t], want.Tasks[t]
		if g.State != w.State || g.Generation != w.Generation || g.Created != w.Created || string(g.Output) != string(w.Output) {
			c.breach("I7", "task %s of case %s is %+v in the tables, and %+v in the journal",
				want.Net.TaskName(net.TaskID(t)), want.ID, g, w)
		}
	}
	if string(got.Output) != string(want.Output) || !sameFailure(got.Failure, want.Failure) {
		c.breach("I7", "case %s ended with %s %s in the tables, and with %s %s in the journal",
			want.ID, got.Output, got.Failure, want.Output, want.Failure)
	}
	if !sameSuspension(got.Suspended, want.Suspended) {
		c.breach("I7", "case %s is suspended with %+v in the tables, and with %+v in the journal", want.ID, got.Suspended, want.Suspended)
	}
	if !samePlace(got, want) || !sameStart(got, want) || !got.Ended.Equal(want.Ended) || !got.KeepUntil.Equal(want.KeepUntil) {
		c.breach("I7", "case %s has another place, beginning or time in the tables than in the journal", want.ID)
	}
}

func sameSuspension(got, want *state.Suspension) bool {
	if got == nil || want == nil {
		return got == want
	}
	return got.At.Equal(want.At) && got.By == want.By && got.Reason == want.Reason
}

// samePlace reports whether two cases have the same parent and position.
func samePlace(got, want *state.Case) bool {
	return got.Root == want.Root && got.Parent == want.Parent && got.ParentTask == want.ParentTask &&
		got.Generation == want.Generation && got.Number == want.Number && got.Caller == want.Caller
}

// sameStart reports whether two cases were started with the same values.
func sameStart(got, want *state.Case) bool {
	return got.Workflow == want.Workflow && got.Version == want.Version && string(got.Input) == string(want.Input) &&
		string(got.Options) == string(want.Options) && got.Priority == want.Priority && got.Predecessor == want.Predecessor &&
		got.Created.Equal(want.Created) && got.Key == want.Key && got.Unique == want.Unique && maps.Equal(got.Labels, want.Labels)
}

func marking(c *state.Case) string {
	s := "{"
	for p, n := range c.Marking {
		if n > 0 {
			s += fmt.Sprintf(" %s:%d", c.Net.ConditionName(net.ConditionID(p)), n)
		}
	}
	return s + " }"
}

// compareRows compares the rows of one table with the result of the journal; same reports whether two rows are equal.
func compareRows[K interface {
	comparable
	fmt.Stringer
}, V any](
	c *checker, f *family, what string, stored []*V, journal map[K]*V, id func(*V) K, same func(got, want *V) bool,
) {
	for _, got := range stored {
		if want := journal[id(got)]; want == nil || !same(got, want) {
			c.breach("I7", "%s %s is %+v in the tables, and %+v in the journal", what, id(got), got, want)
		}
	}
	if len(stored) != len(journal) {
		c.breach("I7", "case %s has %d %ss in the tables, and %d in the journal", f.tree.Root, len(stored), what, len(journal))
	}
}

func sameItem(got, want *workitem.Item) bool {
	return got.Case == want.Case && got.Task == want.Task && got.Generation == want.Generation && got.Number == want.Number &&
		got.Attempt == want.Attempt && got.Predecessor == want.Predecessor && got.Successor == want.Successor &&
		got.State == want.State && got.Queue == want.Queue && got.Priority == want.Priority && got.By == want.By &&
		string(got.Input) == string(want.Input) && string(got.Output) == string(want.Output) && string(got.Retry) == string(want.Retry) &&
		sameFailure(got.Failure, want.Failure) && got.Created.Equal(want.Created) && got.Due.Equal(want.Due) &&
		got.Started.Equal(want.Started) && got.Ended.Equal(want.Ended)
}

func sameJob(got, want *state.Job) bool {
	return got.Case == want.Case && got.Root == want.Root && got.Task == want.Task && got.Generation == want.Generation &&
		got.Item == want.Item && got.Kind == want.Kind && got.Name == want.Name && got.Queue == want.Queue &&
		got.Priority == want.Priority && string(got.Input) == string(want.Input) && got.Detached == want.Detached &&
		got.State == want.State && got.Attempt == want.Attempt && got.Crashes == want.Crashes && got.Fence == want.Fence &&
		got.Owner == want.Owner && sameFailure(got.Failure, want.Failure) && got.Due.Equal(want.Due) &&
		got.Lease.Equal(want.Lease) && got.Created.Equal(want.Created) && got.Ended.Equal(want.Ended)
}

func sameStep(got, want *workitem.Step) bool {
	return got.Job == want.Job && got.Item == want.Item && got.Case == want.Case && got.Name == want.Name &&
		got.Kind == want.Kind && got.Target == want.Target && got.Topic == want.Topic && string(got.Input) == string(want.Input) &&
		got.State == want.State && got.Attempt == want.Attempt && got.Run == want.Run && got.Child == want.Child &&
		string(got.Result) == string(want.Result) && sameFailure(got.Failure, want.Failure) && got.Copied == want.Copied &&
		got.Due.Equal(want.Due) && got.Created.Equal(want.Created) && got.Ended.Equal(want.Ended)
}

func sameMessage(got, want *state.Message) bool {
	return got.Case == want.Case && got.Name == want.Name && got.Topic == want.Topic && string(got.Value) == string(want.Value) &&
		got.By == want.By && got.Sent.Equal(want.Sent) && got.Step == want.Step && got.Taken.Equal(want.Taken)
}

func sameFailure(got, want *workitem.Failure) bool {
	if got == nil || want == nil {
		return got == want
	}
	return got.Code == want.Code && got.Message == want.Message && string(got.Details) == string(want.Details) &&
		got.Retryable == want.Retryable && got.After == want.After && got.Filtered == want.Filtered
}

// steps reports names that a run of a job has recorded twice.
func (c *checker) steps(f *family) {
	type name struct {
		job  workitem.JobID
		name string
		run  int
	}
	named := make(map[name]bool)
	for _, s := range f.steps {
		key := name{s.Job, s.Name, s.Run}
		if named[key] {
			c.breach("S2", "job %s recorded two steps %q in run %d", s.Job, s.Name, s.Run)
		}
		named[key] = true
	}
}

// messages reports events that were taken by a step that does not exist.
func (c *checker) messages(f *family) {
	for _, m := range f.messages {
		if !m.Step.IsZero() && f.steps[m.Step] == nil {
			c.breach("S4", "event %s was taken by step %s, which is not there", m.ID, m.Step)
		}
	}
}
