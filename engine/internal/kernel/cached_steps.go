package kernel

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// keepSteps has the run of an item go on where that of its predecessor stopped: the finished steps are copied, as steps of
// the new job. They are copied and not referred to, so that each run is complete by itself: what an operator forgets or repeats
// in one attempt does not change the record of another.
func (m *Machine) keepSteps(id workitem.CaseID, it, predecessor *workitem.Item) error {
	steps, err := m.host.Steps(predecessor.ID)
	if err != nil {
		return fmt.Errorf("steps of %s: %w", predecessor.Label(), err)
	}
	for _, j := range m.tree.Case(id).Jobs.Of(it.ID) {
		if j.Kind == state.JobRun {
			return m.copySteps(id, j, Finished(steps))
		}
	}
	return nil
}

// Finished chooses the steps that a fresh run may take over: those that the last job of an owner had done. Tokens stand
// for events that are still to come, so they are created again: a used one can't be used again.
//
// The steps of an owner are listed in the order of their creation, over all its jobs. A reset gives an item another job, whose
// steps begin behind those of the first; so each step of another job starts the list again, and the last job remains.
func Finished(steps []*workitem.Step) []*workitem.Step {
	var done []*workitem.Step
	for _, s := range steps {
		if len(done) > 0 && done[0].Job != s.Job {
			done = done[:0]
		}
		if s.State == workitem.StepDone && s.Kind != workitem.StepToken {
			done = append(done, s)
		}
	}
	return done
}

// copySteps takes the finished steps of an earlier run over into a new job, so that it does not do them again.
func (m *Machine) copySteps(id workitem.CaseID, j *state.Job, finished []*workitem.Step) error {
	for _, old := range finished {
		s := *old
		s.ID, s.Job, s.Case, s.Item, s.Copied, s.Run = m.host.IDs().NewStepID(m.now), j.ID, id, workitem.ID{}, true, 0
		if j.Kind == state.JobRun {
			s.Item = j.Item
		}
		if err := m.emit(&state.StepOpened{Step: &s}); err != nil {
			return err
		}
	}
	return nil
}

// earlierSteps reads the steps that earlier runs of a job recorded. A job that is claimed for the first time has none,
// unless it took steps over.
func (m *Machine) earlierSteps(c *state.Case, j *state.Job, it *workitem.Item) ([]*workitem.Step, error) {
	if j.Fence == 0 && (it == nil || it.Attempt == 1) && c.Predecessor.IsZero() {
		return nil, nil
	}
	steps, known := m.host.CachedSteps(m.tree.Root, j.ID)
	if !known {
		owner := [16]byte(j.ID)
		if j.Kind == state.JobRun {
			owner = j.Item
		}
		var err error
		if steps, err = m.host.Steps(owner); err != nil {
			return nil, fmt.Errorf("steps of job %s: %w", j.ID, err)
		}
		steps = slices.DeleteFunc(steps, func(s *workitem.Step) bool { return s.Job != j.ID })
	}
	m.refresh(c.ID, steps) // the claim itself may have ended some
	return steps, nil
}
