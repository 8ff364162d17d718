package kernel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A fork repeats the past of another tree under new ids: each change of its entries becomes a change in the first entry
// of the fork. So the journal of the fork rebuilds it like any tree, and does not depend on the other tree.
//
//	other tree    1 opened, enabled   2 item completed   3 job runs    4 ...
//	fork at 3     opened, enabled, item completed, job runs, job is due again, note        as one entry
//
// Changes record decisions, so nothing is decided again: no callback is called, and a completed step is not repeated.
// What others hold of the past is not valid for the fork: its tokens are new, and the leases of workers are void.

// fork translates the changes of another tree.
type fork struct {
	*record
	definitions *definitions
	jobs        *jobs
	tokens      Tokens

	renamed map[[16]byte][16]byte // the new ids of what the other tree opened
	of      workitem.CaseID       // the root case of the other tree
}

// Fork fills an empty tree, whose root has its id, with the changes of the entries of another root case. seq is the
// position of the fork. The error wraps [ErrNotFound] if there are no entries, and activities.ErrInactive if the case
// had ended.
func (m *Machine) Fork(of workitem.CaseID, entries []*store.Entry, seq int64) error {
	if len(entries) == 0 {
		return fmt.Errorf("case %s was not there at position %d of the journal: %w", of, seq, ErrNotFound)
	}
	f := &fork{record: &m.record, definitions: &m.definitions, jobs: &m.jobs, tokens: m.messages.tokens,
		renamed: map[[16]byte][16]byte{of: m.tree.Root}, of: of}
	for _, e := range entries { // two passes, since a change may refer to something that a later one opens
		for _, c := range e.Changes {
			f.name(c)
		}
	}
	for _, e := range entries {
		for _, c := range e.Changes {
			n, err := f.change(c)
			if err == nil {
				err = m.emit(n)
			}
			if err != nil {
				return fmt.Errorf("journal entry %d: %w", e.Seq, err)
			}
		}
	}
	root, last := m.tree.Case(m.tree.Root), entries[len(entries)-1]
	if root.State.Final() {
		return fmt.Errorf("case %s %w at position %d of the journal: it was %s; name an earlier position", of, activities.ErrInactive, seq, root.State)
	}
	if err := f.begin(last.At); err != nil {
		return err
	}
	return m.note(root.ID, -1, state.NoteFork, fmt.Sprintf("forked from case %s at position %d", of, last.Seq))
}

// name makes the new id of what a change opens, in the same order.
// The order matters, since ids increase and lists are sorted by id: what the other tree opened first comes first in
// the fork.
func (f *fork) name(c state.Change) {
	ids, now := f.ids, f.now
	switch c := c.(type) {
	case *state.CaseOpened:
		// The root has its new id already, that of the tree.
		if c.Case.ID != f.of {
			f.renamed[c.Case.ID] = ids.NewCaseID(now)
		}
	case *state.ItemOpened:
		f.renamed[c.Item.ID] = ids.NewID(now)
	case *state.JobOpened:
		f.renamed[c.Job.ID] = ids.NewJobID(now)
	case *state.StepOpened:
		f.renamed[c.Step.ID] = ids.NewStepID(now)
	case *state.MessageSent:
		f.renamed[c.Message.ID] = ids.NewMessageID(now)
	}
}

// as returns the id in the fork; an id that the other tree did not open stays.
func as[K ~[16]byte](f *fork, id K) K {
	if n, ok := f.renamed[id]; ok {
		return n
	}
	return id
}

// change translates a change.
func (f *fork) change(c state.Change) (state.Change, error) {
	switch c := c.(type) {
	case *state.CaseOpened:
		return &state.CaseOpened{Case: f.opened(c.Case)}, nil
	case *state.ItemOpened:
		it := *c.Item
		it.ID, it.Case, it.Predecessor, it.Successor = as(f, it.ID), as(f, it.Case), as(f, it.Predecessor), as(f, it.Successor)
		return &state.ItemOpened{Item: &it}, nil
	case *state.JobOpened:
		return f.jobOpened(c.Job)
	case *state.StepOpened:
		return f.stepOpened(c.Step)
	case *state.MessageSent:
		mail := *c.Message
		mail.ID, mail.Case, mail.Step = as(f, mail.ID), as(f, mail.Case), as(f, mail.Step)
		return &state.MessageSent{Message: &mail}, nil
	case *state.RetryChanged:
		n := *c
		n.Case, n.Item = as(f, n.Case), as(f, n.Item)
		return &n, nil
	case *state.ItemMoved:
		n := *c
		n.Case, n.Item = as(f, n.Case), as(f, n.Item)
		return &n, nil
	case *state.JobMoved:
		n := *c
		n.Case, n.Job = as(f, n.Case), as(f, n.Job)
		return &n, nil
	case *state.StepMoved:
		n := *c
		n.Case, n.Job, n.Step = as(f, n.Case), as(f, n.Job), as(f, n.Step)
		return &n, nil
	case *state.MessageTaken:
		n := *c
		n.Case, n.Message, n.Step = as(f, n.Case), as(f, n.Message), as(f, n.Step)
		return &n, nil
	}
	return f.ofCase(c)
}

// ofCase translates a change that refers only to its case.
func (f *fork) ofCase(c state.Change) (state.Change, error) {
	id := as(f, state.CaseOf(c))
	switch c := c.(type) {
	case *state.CaseBegun:
		return &state.CaseBegun{Case: id}, nil
	case *state.CaseEnded:
		n := *c
		n.Case = id
		return &n, nil
	case *state.CaseResumed:
		return &state.CaseResumed{Case: id, At: c.At}, nil
	case *state.CaseSuspended:
		return &state.CaseSuspended{Case: id, Suspension: c.Suspension}, nil
	case *state.CaseContinued:
		return &state.CaseContinued{Case: id, At: c.At}, nil
	case *state.TaskMoved:
		n := *c
		n.Case = id
		return &n, nil
	case *state.TaskResumed:
		n := *c
		n.Case = id
		return &n, nil
	case *state.Produced:
		n := *c
		n.Case = id
		return &n, nil
	case *state.TokensMoved:
		n := *c
		n.Case = id
		return &n, nil
	case *state.Removed:
		n := *c
		n.Case = id
		return &n, nil
	case *state.Noted:
		n := *c
		n.Case = id
		return &n, nil
	}
	return nil, fmt.Errorf("%w: a fork takes over no %T", store.ErrCorrupt, c)
}

// opened translates a case. The root does not hold its business key, and its creation time is now.
// A key has one holder, and that may still be the other case.
func (f *fork) opened(given *state.Case) *state.Case {
	c := *given
	c.ID, c.Root, c.Parent, c.Caller, c.Predecessor = as(f, c.ID), f.tree.Root, as(f, c.Parent), as(f, c.Caller), as(f, c.Predecessor)
	if c.ID == c.Root {
		c.Unique, c.Created, c.Predecessor = false, f.now, f.of
	}
	return &c
}

// jobOpened translates a job. The subject of an incident is translated too.
// It names the child case or the job that a person decides about: with the old id the decision would concern the
// other tree.
func (f *fork) jobOpened(given *state.Job) (state.Change, error) {
	j := *given
	j.ID, j.Case, j.Root, j.Item = as(f, j.ID), as(f, j.Case), f.tree.Root, as(f, j.Item)
	if isIncident(&j) && len(j.Input) > 0 {
		about, err := state.SubjectOf(&j)
		if err != nil {
			return nil, err
		}
		about.Case = as(f, about.Case)
		if about.Job != nil {
			about.Job.ID = as(f, about.Job.ID)
		}
		if j.Input, err = about.Encode(); err != nil {
			return nil, err
		}
	}
	return &state.JobOpened{Job: &j}, nil
}

// stepOpened translates a step. A token is replaced: the holder of the old one can use it only for the other case.
func (f *fork) stepOpened(given *workitem.Step) (state.Change, error) {
	s := *given
	s.ID, s.Job, s.Item, s.Case, s.Child = as(f, s.ID), as(f, s.Job), as(f, s.Item), as(f, s.Case), as(f, s.Child)
	if s.Kind == workitem.StepToken {
		text, err := f.tokens.NewToken(f.tree.Root)
		if err != nil {
			return nil, err
		}
		if s.Result, err = json.Marshal(text); err != nil {
			return nil, err
		}
	}
	return &state.StepOpened{Step: &s}, nil
}

// begin restarts what was in progress: jobs that ran are due, and whatever waited for a time waits for the rest of it:
//
//	other case    then ├──── left ────┤ due
//	fork          now  ├──── left ────┤ now + left
//
// The attempt of a job that ran is not used up, since its end is not part of the fork. A job that was due keeps its old
// due time, so that the jobs of the fork keep their order.
func (f *fork) begin(then time.Time) (err error) {
	left := func(due time.Time) time.Time {
		if due.After(then) {
			return f.now.Add(due.Sub(then))
		}
		return due
	}
	f.tree.Each(func(c *state.Case) {
		// A fork that this engine could not continue is refused here, and not at its first job.
		if _, missing := f.definitions.of(c); missing != nil && err == nil && !c.State.Final() {
			err = missing
		}
		for _, j := range c.Jobs.Slice() {
			due := left(j.Due)
			switch {
			case err != nil:
			case j.State == state.JobRunning:
				err = f.jobs.move(c.ID, j, func(e *state.JobMoved) {
					e.To, e.Due, e.Owner, e.Lease, e.Attempt = state.JobPending, due, "", time.Time{}, j.Attempt-1
				})
			case j == c.Turn(): // the fork holds no key, so it need not wait for other cases
				err = f.jobs.move(c.ID, j, func(e *state.JobMoved) { e.To, e.Due = state.JobPending, f.now })
			case !due.Equal(j.Due):
				err = f.jobs.move(c.ID, j, func(e *state.JobMoved) { e.Due = due })
			}
		}
		for _, s := range c.Steps.Slice() {
			if due := left(s.Due); err == nil && !due.Equal(s.Due) {
				err = f.jobs.moveStep(s, func(e *state.StepMoved) { e.Due = due })
			}
		}
	})
	return err
}
