package kernel

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// keepSteps continues the run of an item where that of its predecessor stopped: the completed steps are copied, as
// steps of the new job. They are copied and not referenced, so that the record of each run is complete: what an
// operator repeats in one attempt does not change the record of another.
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

// Finished returns the steps that a new run may take over: those that the last job of an owner has completed. Tokens
// are left out, since they stand for events that are still to come, and a used one cannot be used again.
//
// The steps of an owner are in the order of their creation, over all its jobs. A reset gives an item another job, whose
// steps come after those of the first. So a step of another job restarts the list, and the steps of the last job
// remain.
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

// copySteps copies the completed steps of an earlier run to a new job, which does not execute them again.
func (m *Machine) copySteps(id workitem.CaseID, j *state.Job, finished []*workitem.Step) error {
	for _, old := range finished {
		s := *old
		s.ID, s.Job, s.Case, s.Item, s.Copied, s.Run = m.ids.NewStepID(m.now), j.ID, id, workitem.ID{}, true, 0
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
	m.refresh(c.ID, steps) // the claim itself may have ended some of them
	return steps, nil
}
