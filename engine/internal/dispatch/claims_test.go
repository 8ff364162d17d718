package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// runOf is a run that holds its job by a fence, and reports whether its context was canceled.
func runOf(root workitem.CaseID, fence int64) (r *running, canceled *bool) {
	canceled = new(bool)
	cancel := func(error) { *canceled = true }
	j := worker.New(worker.Options{}).NewJournal(root, &activities.Work{Fence: fence}, nil, cancel)
	return &running{root: root, steps: j, cancel: cancel}, canceled
}

// isNotified reports whether a run is notified of the end of its steps.
func isNotified(r *running) bool {
	s := &workitem.Step{ID: workitem.StepID{9}, Kind: workitem.StepCase, State: workitem.StepWaiting}
	told := false
	r.steps.Watch(func(*workitem.Step) { told = true })
	r.steps.Opened(s)
	r.steps.Moved(&state.StepMoved{Step: s.ID, To: workitem.StepDone})
	return told
}

func TestAClaimEndsOnlyItsOwnRun(t *testing.T) {
	c, id := newClaims(), workitem.JobID{1}
	c.reserve(id)
	require.True(t, c.isReserved(id))
	require.True(t, c.idle(), "no worker has it yet")

	first, _ := runOf(workitem.CaseID{1}, 1)
	c.begin(id, first)
	require.False(t, c.isReserved(id))
	require.False(t, c.idle())
	second, _ := runOf(workitem.CaseID{1}, 2)
	c.begin(id, second) // the job was taken from the first, which has not returned
	c.end(id, first.steps)
	require.True(t, c.of(id).holds(2))
	c.end(id, second.steps)
	require.False(t, c.of(id).holds(2))
	require.True(t, c.idle())
}

// Jobs that are lost stay with their workers until these return, but by no fence; who was lost before is another matter then.
func TestLostJobsAreHeldByNoFence(t *testing.T) {
	c, old, job := newClaims(), workitem.JobID{1}, workitem.JobID{2}
	before, _ := runOf(workitem.CaseID{1}, 1)
	c.begin(old, before)
	c.lose()
	c.end(old, before.steps)
	require.True(t, c.wasLost(old))

	r, canceled := runOf(workitem.CaseID{2}, 7)
	c.begin(job, r)
	c.lose()
	require.True(t, *canceled)
	require.False(t, isNotified(r), "it is not notified any more")
	require.False(t, c.of(job).holds(7))
	require.True(t, c.wasLost(job))
	require.False(t, c.wasLost(old))
	c.forget(job)
	require.False(t, c.wasLost(job))
}

// After other engines have written, a run continues if it holds its job as before, and leaves it in all other cases.
func TestARunLeavesAJobThatItDoesNotHold(t *testing.T) {
	root, other := workitem.CaseID{1}, workitem.CaseID{2}
	step := &workitem.Step{ID: workitem.StepID{1}, Kind: workitem.StepCase, State: workitem.StepWaiting}
	done := *step
	done.State = workitem.StepDone
	treeWith := func(s state.JobState, fence int64) *state.Tree {
		c := &state.Case{ID: root, Root: root}
		c.Load(nil, []*state.Job{{ID: workitem.JobID{1}, Case: root, Root: root, State: s, Fence: fence}})
		return state.NewTree(c)
	}
	for name, tc := range map[string]struct {
		tree *state.Tree
		goes bool
	}{
		"as before":    {tree: treeWith(state.JobRunning, 3), goes: true},
		"next claim":   {tree: treeWith(state.JobRunning, 4)},
		"given back":   {tree: treeWith(state.JobPending, 3)},
		"case removed": {},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClaims()
			r, canceled := runOf(root, 3)
			r.steps.Opened(step)
			var told []workitem.StepState
			r.steps.Watch(func(s *workitem.Step) { told = append(told, s.State) })
			beside, untouched := runOf(other, 3)
			c.begin(workitem.JobID{1}, r)
			c.begin(workitem.JobID{2}, beside)
			c.compare(root, tc.tree, map[workitem.JobID][]*workitem.Step{{1}: {&done}})
			require.Equal(t, !tc.goes, *canceled)
			require.Equal(t, tc.goes, len(told) == 1)
			require.False(t, *untouched)
		})
	}
}

// A change of a job concerns the run that had it until then, and no later one.
func TestARunIsInterruptedByTheChangeOfItsClaim(t *testing.T) {
	c, id := newClaims(), workitem.JobID{1}
	r, canceled := runOf(workitem.CaseID{1}, 2)
	c.begin(id, r)
	c.interrupt(&state.JobMoved{Job: id, To: state.JobPending, Fence: 1})
	require.True(t, isNotified(r))
	c.interrupt(&state.JobMoved{Job: id, To: state.JobWaiting, Fence: 2})
	require.False(t, isNotified(r), "what comes after this is for the next run")
	require.False(t, *canceled, "its worker is returning by itself")
	c.interrupt(&state.JobMoved{Job: id, To: state.JobPending, Fence: 2})
	require.True(t, *canceled)
}
