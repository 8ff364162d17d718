package kernel

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// recordedSteps reads the steps that runs of functions have recorded, and copies them to the runs that continue where others have
// stopped.
type recordedSteps struct {
	*record
	host   RecordedSteps
	copied []*workitem.Step // for the first run of the case that the command starts
}

// keep continues the run of an item where that of its predecessor stopped: the completed steps are copied, as
// steps of the new job. They are copied and not referenced, so that the record of each run is complete: what an
// operator repeats in one attempt does not change the record of another.
func (rs *recordedSteps) keep(id workitem.CaseID, it, predecessor *workitem.Item) error {
	steps, err := rs.host.Steps(predecessor.ID)
	if err != nil {
		return fmt.Errorf("steps of %s: %w", predecessor.Label(), err)
	}
	for _, j := range rs.tree.Case(id).Jobs.Of(it.ID) {
		if j.Kind == state.JobRun {
			return rs.copy(id, j, Finished(steps))
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

// takeOver copies the steps of the restarted run to the first item with a run, and only to that: later items are work
// of their own.
//
//	old run     charge done    pack done    ship failed
//	new run     charge done    pack done    ship is called
//
// The steps are taken once: none are left for another item, also if this one has no run.
func (rs *recordedSteps) takeOver(id workitem.CaseID, it *workitem.Item) error {
	steps := rs.copied
	rs.copied = nil
	for _, j := range rs.tree.Case(id).Jobs.Of(it.ID) {
		if j.Kind == state.JobRun {
			return rs.copy(id, j, steps)
		}
	}
	return nil
}

// copy copies the completed steps of an earlier run to a new job, which does not execute them again.
func (rs *recordedSteps) copy(id workitem.CaseID, j *state.Job, finished []*workitem.Step) error {
	for _, old := range finished {
		s := *old
		s.ID, s.Job, s.Case, s.Item, s.Copied, s.Run = rs.ids.NewStepID(rs.now), j.ID, id, workitem.ID{}, true, 0
		if j.Kind == state.JobRun {
			s.Item = j.Item
		}
		if err := rs.emit(&state.StepOpened{Step: &s}); err != nil {
			return err
		}
	}
	return nil
}

// earlier reads the steps that earlier runs of a job recorded. A job that is claimed for the first time has none,
// unless it took steps over.
func (rs *recordedSteps) earlier(c *state.Case, j *state.Job, it *workitem.Item) ([]*workitem.Step, error) {
	if j.Fence == 0 && (it == nil || it.Attempt == 1) && c.Predecessor.IsZero() {
		return nil, nil
	}
	steps, known := rs.host.CachedSteps(rs.tree.Root, j.ID)
	if !known {
		owner := [16]byte(j.ID)
		if j.Kind == state.JobRun {
			owner = j.Item
		}
		var err error
		if steps, err = rs.host.Steps(owner); err != nil {
			return nil, fmt.Errorf("steps of job %s: %w", j.ID, err)
		}
		steps = slices.DeleteFunc(steps, func(s *workitem.Step) bool { return s.Job != j.ID })
	}
	rs.refresh(c.ID, steps) // the claim itself may have ended some of them
	return steps, nil
}

// refresh replaces waiting steps that ended later in the same command, as that of a child case that never waits.
// The caller would wait for the end of such a step, which was reported before the step itself.
func (rs *recordedSteps) refresh(id workitem.CaseID, stored []*workitem.Step) {
	c := rs.tree.Case(id)
	for i, s := range stored {
		if s.State != workitem.StepWaiting || c.Step(s.ID) != nil {
			continue
		}
		if ended := rs.endOf(s); ended != nil {
			stored[i] = ended
		}
	}
}

// ended returns the stored state of a step that no longer waits.
func (rs *recordedSteps) ended(given *workitem.Step) (*workitem.Step, error) {
	steps, err := rs.host.Steps(given.Owner())
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.ID == given.ID {
			return s, nil
		}
	}
	return nil, fmt.Errorf("it was never recorded: %w", ErrNotFound)
}

// canWait reports whether the case of a start can be queued. A run that takes over steps cannot wait, since nothing
// would store the steps until it begins.
func (rs *recordedSteps) canWait() bool { return len(rs.copied) == 0 }
