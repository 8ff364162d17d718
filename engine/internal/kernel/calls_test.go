package kernel_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// calling is a case whose start schedules the function f, which a worker holds.
func calling(t *testing.T, p retry.Policy) *worker {
	t.Helper()
	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "f")
	d.Calls["f"].Retry = p
	d.Hooks.OnInitialized = func(_ context.Context, c *activities.Case) error {
		_, err := c.Schedule(activities.NewJob{Name: "f", Input: json.RawMessage(`3`)})
		return err
	}
	return working(t, d)
}

// A function that fails is called again by its policy, as one and the same job, and then given up with a note for a person. Its
// case continues.
func TestACallIsRetried(t *testing.T) {
	w := calling(t, retry.Constant(2, time.Minute))
	require.JSONEq(t, `3`, string(w.work.Input))
	require.Equal(t, "f", w.work.Name)
	require.Nil(t, w.work.Item)
	failure := workitem.Failf("busy", "later")
	did, err := w.settle(w.work, failure)
	require.NoError(t, err)
	require.Equal(t, "call:f=pending", did)
	j := w.live()[0]
	require.Equal(t, w.now.Add(time.Minute), j.Due)
	require.Equal(t, failure, j.Failure)
	require.Empty(t, j.Owner)
	require.Equal(t, "call:f=running", w.reclaim())
	require.Equal(t, 2, w.work.Attempt)
	require.Equal(t, 2, w.work.Run)
	did, err = w.settle(w.work, failure)
	require.NoError(t, err)
	require.Equal(t, "call:f=failed note:incident +incident:function", did)
	require.Contains(t, w.last[1].(*state.Noted).Text, "(f) was given up: busy: later")
	require.Equal(t, state.CaseStarted, w.root().State)
}

// One that succeeds is done. A failure that no attempt can repair is final at once, and so is one without a policy.
func TestACallEnds(t *testing.T) {
	again := retry.Constant(2, time.Minute)
	for _, test := range []struct {
		policy  retry.Policy
		failure *workitem.Failure
		did     string
	}{
		{again, nil, "call:f=done"},
		{again, &workitem.Failure{Code: "wrong"}, "call:f=failed note:incident +incident:function"},
		{retry.Policy{}, workitem.Failf("busy", "later"), "call:f=failed note:incident +incident:function"},
	} {
		w := calling(t, test.policy)
		did, err := w.settle(w.work, test.failure)
		require.NoError(t, err)
		require.Equal(t, test.did, did)
		for _, left := range w.live() {
			require.Equal(t, state.JobIncident, left.Kind)
		}
	}
}

// A policy that is bounded in time counts from the creation of the job.
func TestACallHasATimeInAll(t *testing.T) {
	p := retry.Constant(100, time.Minute)
	p.MaxElapsed = 90 * time.Second
	w := calling(t, p)
	require.False(t, w.live()[0].Lease.IsZero())
	_, err := w.settle(w.work, workitem.Failf("busy", "later"))
	require.NoError(t, err)
	require.Zero(t, w.live()[0].Lease, "no worker has it until its next attempt")
	require.Zero(t, w.live()[0].Owner)
	w.now = w.now.Add(time.Minute)
	w.reclaim()
	did, err := w.settle(w.work, workitem.Failf("busy", "later"))
	require.NoError(t, err)
	require.Equal(t, "call:f=failed note:incident +incident:function", did)
}

// A function that the workflow does not have is not scheduled.
func TestAnUnknownFunction(t *testing.T) {
	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	d.Hooks.OnInitialized = func(_ context.Context, c *activities.Case) error {
		_, err := c.Schedule(activities.NewJob{Name: "g"})
		return err
	}
	_, err := newWorld(t, d).do("start")
	require.ErrorIs(t, err, kernel.ErrNotFound)
	require.ErrorContains(t, err, `function "g" of workflow w`)
}

// A job of a live item belongs to it, and ends with it; that of an activation does not.
func TestACallOfAnItemEndsWithIt(t *testing.T) {
	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "item", "task")
	with(d, "a", workflow.Task{Inputs: items(2),
		ItemHooks: activities.ItemHooks{OnStarted: func(_ context.Context, it *activities.Item) error {
			_, err := it.Schedule(activities.NewJob{Name: "item"})
			return err
		}},
		Hooks: activities.TaskHooks{OnStarted: func(_ context.Context, a *activities.Activation) error {
			_, err := a.Schedule(activities.NewJob{Name: "task"})
			return err
		}}})
	w := newWorld(t, d)
	w.jobs = true
	w.must("start")
	require.Equal(t, "case* a*i +call:task a.1.1=started +call:item", w.must("begin a.1.1"))
	require.Equal(t, "a.1.2=started +call:item", w.must("begin a.1.2"))
	require.Equal(t, "a.1.1=completed call:item=canceled", w.must("complete a.1.1"))
	require.Len(t, w.live(), 2)
	require.Equal(t, "a.1.2=completed call:item=canceled a! call:task=canceled a>e case=completed", w.must("complete a.1.2"))
}

// A worker may keep its job for longer, hand it back, or leave it to a person. Each needs the fence that it holds.
func TestALeaseIsKeptAndGivenUp(t *testing.T) {
	w := working(t, function(t, "w"))
	later := w.now.Add(time.Hour)
	did, err := w.command(func(m *kernel.Machine) error { return m.Leases().Renew(w.work.Job, w.work.Fence, later) })
	require.NoError(t, err)
	require.Equal(t, "run=running", did)
	require.Equal(t, later, w.live()[0].Lease)
	require.Equal(t, "worker", w.live()[0].Owner)
	attempt := func(id workitem.JobID) (n int) {
		_, err := w.command(func(m *kernel.Machine) error { n = m.Timers().JobAttempt(id); return nil })
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 1, attempt(w.work.Job))
	require.Zero(t, attempt(workitem.JobID{7}))

	old := w.work.Fence
	did, err = w.command(func(m *kernel.Machine) error { return m.Leases().Reclaim(w.work.Job) })
	require.NoError(t, err)
	require.Equal(t, "run=pending", did)
	require.Zero(t, w.live()[0].Crashes)
	require.Zero(t, attempt(w.work.Job), "that was no attempt")
	_, err = w.command(func(m *kernel.Machine) error { return m.Leases().Reclaim(w.work.Job) })
	require.ErrorIs(t, err, kernel.ErrLeaseLost, "no worker holds it")
	_, err = w.command(func(m *kernel.Machine) error { return m.Leases().Reclaim(workitem.JobID{7}) })
	require.ErrorIs(t, err, kernel.ErrLeaseLost)

	w.reclaim()
	failure := workitem.Failf("refused", "by the transaction")
	for name, command := range map[string]func(m *kernel.Machine) error{
		"renew":   func(m *kernel.Machine) error { return m.Leases().Renew(w.work.Job, old, later) },
		"settle":  func(m *kernel.Machine) error { return m.Leases().Settle(w.work.Job, old, nil, nil) },
		"give up": func(m *kernel.Machine) error { return m.Leases().GiveUp(w.work.Job, old, failure) },
		"release": func(m *kernel.Machine) error { return m.Leases().Release(w.work.Job, old, true) },
		"steps":   func(m *kernel.Machine) error { _, err := m.Steps().Record(w.work.Job, old, nil); return err },
		"suspend": func(m *kernel.Machine) error { _, _, err := m.Steps().Suspend(w.work.Job, old, nil, nil); return err },
		"due":     func(m *kernel.Machine) error { return m.Steps().EndDue(w.work.Job, old) },
	} {
		_, err := w.command(command)
		require.ErrorIs(t, err, kernel.ErrLeaseLost, name)
	}
	did, err = w.command(func(m *kernel.Machine) error { return m.Leases().GiveUp(w.work.Job, w.work.Fence, failure) })
	require.NoError(t, err)
	require.Equal(t, "run=failed note:incident +incident:result", did)
	require.Contains(t, w.last[1].(*state.Noted).Text, "(run) was given up: refused: by the transaction")
	require.Equal(t, net.TaskID(0), w.last[1].(*state.Noted).Task)
	require.Equal(t, workitem.Started, w.root().Items.Slice()[0].State, "the item waits for a person")
}

// A claim is refused for a job that is not there. One whose start ends its item stands, and has no work for a worker.
func TestAClaimWithoutWork(t *testing.T) {
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Run: run,
		ItemHooks: activities.ItemHooks{OnStarted: func(_ context.Context, it *activities.Item) error { return it.Cancel(nil) }}})
	w := newWorld(t, d)
	w.must("start")
	id := w.live()[0].ID
	claim := func(id workitem.JobID) (work *activities.Work, err error) {
		_, err = w.command(func(m *kernel.Machine) (err error) { work, err = m.Leases().Claim(id, "worker", w.now); return err })
		return work, err
	}
	_, err := claim(workitem.JobID{7})
	require.ErrorIs(t, err, kernel.ErrNotFound)
	work, err := claim(id)
	require.NoError(t, err)
	require.Nil(t, work)
	require.Empty(t, w.live())
	require.Equal(t, state.CaseCompleted, w.root().State, "the canceled item was the only one of the task")
}
