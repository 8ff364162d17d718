package kernel

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ended are the cases that a part has asked to end.
type ended []workitem.CaseID

func (e *ended) endCase(id workitem.CaseID, _ state.CaseState, _ *workitem.Failure, _ bool) step {
	return func() error {
		*e = append(*e, id)
		return nil
	}
}

// newJobs returns the jobs of a tree with one case, and the cases that they end.
func newJobs(t *testing.T) (*jobs, *state.Case, *ended) {
	t.Helper()
	r, c := openRecord(t)
	a, e := new(agenda), new(ended)
	a.init(func() bool { return false })
	return &jobs{record: r, agenda: a, cases: e}, c, e
}

// A job that ends cancels its waits and the child cases of its steps, and those of no other job.
func TestJobsEndWithTheirWaits(t *testing.T) {
	js, c, ended := newJobs(t)
	mine, other := &state.Job{Kind: state.JobCall}, &state.Job{Kind: state.JobCall}
	require.NoError(t, js.open(c.ID, mine))
	require.NoError(t, js.open(c.ID, other))
	for i, j := range []*state.Job{mine, other} {
		s := &workitem.Step{ID: js.ids.NewStepID(js.now), Job: j.ID, Case: c.ID, Kind: workitem.StepCase, State: workitem.StepWaiting,
			Child: workitem.CaseID{byte(7 + i)}}
		require.NoError(t, js.emit(&state.StepOpened{Step: s}))
	}
	require.NoError(t, js.cancel(c.ID, []*state.Job{mine}))
	require.NoError(t, js.agenda.run(0))
	require.Equal(t, 1, js.tree.Case(c.ID).Jobs.Len())
	require.Equal(t, 1, js.tree.Case(c.ID).Steps.Len())
	require.NotNil(t, js.tree.Case(c.ID).Job(other.ID))
	require.Equal(t, []workitem.CaseID{{7}}, []workitem.CaseID(*ended))
}

// A start that is given up fails its case, since nothing else would begin it. Another job leaves an incident, until what it is about
// continues.
func TestIncidentsOfJobs(t *testing.T) {
	js, c, ended := newJobs(t)
	in := &incidents{record: js.record, agenda: js.agenda, jobs: js, cases: ended}
	call, start := &state.Job{Kind: state.JobCall, Name: "f"}, &state.Job{Kind: state.JobStart}
	require.NoError(t, js.open(c.ID, call))
	require.NoError(t, in.giveUp(c, call, workitem.Failf("busy", "later")))
	left := js.tree.Case(c.ID).Jobs.Slice()
	require.Len(t, left, 1)
	require.Equal(t, state.IncidentFunction, left[0].Name)
	require.Empty(t, *ended)
	require.NoError(t, in.resolve(c.ID, func(j *state.Job) bool { return j.ID == left[0].ID }))
	require.Zero(t, js.tree.Case(c.ID).Jobs.Len())

	require.NoError(t, js.open(c.ID, start))
	require.NoError(t, in.giveUp(c, start, workitem.Failf("busy", "later")))
	require.Equal(t, []workitem.CaseID{c.ID}, []workitem.CaseID(*ended))
}

// The route of a caller is for one completion of its task, and for no other task.
func TestRoutesUseAChoiceOnce(t *testing.T) {
	_, c := openRecord(t)
	to := c.Net.ConditionName(c.Net.Outputs(0)[0])
	rt := &routes{choice: &choice{at: workitem.CaseID{9}, t: 0, to: []string{to}}}
	_, err := rt.of(c, 0, 1, new(workflow.Task))
	require.NoError(t, err)
	require.NotNil(t, rt.choice, "it is for another case")
	rt.choice.at = c.ID
	_, err = rt.of(c, 0, 1, new(workflow.Task))
	require.ErrorIs(t, err, ErrBadRoute, "an and-split takes every flow")
	require.Nil(t, rt.choice)
}

// A machine that is used again has nothing of the command before: what a command sets in a part is reset.
func TestAMachineForgetsItsCommand(t *testing.T) {
	r, c := openRecord(t)
	h := &idle{counter: new(counter)}
	m := New(context.Background(), h, r.tree, r.now, "ann")
	m.keys = keys{required: workflow.KeyRequirements{Unique: true}, mustWait: true}
	m.recorded.copied = []*workitem.Step{{}}
	m.routes.choice = new(choice)
	m.activations.child, m.activations.exhausted = c.ID, make([]GivenUp, 1)
	m.activations.loops.enabled = map[looping]int{{c.ID, 0}: 1}
	m.cases.ending = map[workitem.CaseID]bool{c.ID: true}
	m.joins.touch(c, net.ConditionID(0))
	m.agenda.addRoom(1)
	m.agenda.push(func() error { return nil })
	m.opened = c

	require.Same(t, m, Reuse(m, context.Background(), h, r.tree, r.now.Add(time.Second), "bob"))
	require.Equal(t, keys{cases: h}, m.keys)
	require.Nil(t, m.recorded.copied)
	require.Nil(t, m.routes.choice)
	require.Zero(t, m.activations.child)
	require.Empty(t, m.activations.exhausted)
	require.Nil(t, m.activations.loops.enabled)
	require.False(t, m.cases.isEnding(c.ID))
	require.Empty(t, m.joins.pending(r.tree))
	require.Zero(t, m.agenda.room+m.agenda.height())
	require.Nil(t, m.opened)
	require.Equal(t, "bob", m.by)
}

// idle is a host that only makes ids.
type idle struct {
	Host
	*counter
}

func (h *idle) IDs() IDs { return h.counter }
