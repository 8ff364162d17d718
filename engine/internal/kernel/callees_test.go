package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
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

// A step runs a child case, and ends as that does; the job that waited continues.
func TestAStepRunsAChildCase(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	child.Output = func(*activities.Case) (json.RawMessage, error) { return json.RawMessage(`"out"`), nil }
	for command, want := range map[string]workitem.Step{
		"complete child.1/c.1.1": {State: workitem.StepDone, Result: json.RawMessage(`"out"`)},
		"fail child.1/c.1.1":     {State: workitem.StepFailed, Failure: &workitem.Failure{Code: "bad", Retryable: true}},
	} {
		w := working(t, function(t, "w"), child)
		did, suspended := w.suspend(called("call", "child"))
		require.True(t, suspended)
		require.Equal(t, "[call=waiting child.1/c+1 child.1/c.1.1=initialized run=waiting", did)
		c := w.tree.Case(w.host.step("call").Child)
		require.JSONEq(t, `5`, string(c.Input))
		require.Equal(t, w.root().ID, c.Parent)
		require.Equal(t, 1, c.Number)
		require.Equal(t, "child.1/case* child.1/c*i child.1/c.1.1=started", w.must("begin child.1/c.1.1"))
		require.Contains(t, w.must(command), "call="+want.State.String()+" run=pending")
		s := w.host.step("call")
		require.Equal(t, want, workitem.Step{State: s.State, Result: s.Result, Failure: s.Failure})
	}
}

// A child case that is canceled cancels its step. A step that the function gives up, or whose job ends, cancels its case.
func TestAChildCaseAndItsStepEndTogether(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	w := working(t, function(t, "w"), child)
	stored, _ := w.write(called("call 1", "child"), called("call 2", "child"), called("call 3", "child"))
	require.Equal(t, 3, w.tree.Case(stored[2].Child).Number)
	_, err := w.command(func(m *kernel.Machine) error { return m.Cancel(stored[0].Child, workitem.Failf("stop", "now")) })
	require.NoError(t, err)
	require.Equal(t, workitem.StepCanceled, w.host.step("call 1").State)
	require.Equal(t, "stop", w.host.step("call 1").Failure.Code)

	canceled := *stored[1]
	canceled.State = workitem.StepCanceled
	_, did := w.write(&canceled)
	require.Equal(t, "call 2=canceled child.2/c- child.2/c.1.1=canceled child.2/case=canceled", did)

	require.Equal(t, "run=done call 3=canceled child.3/c- child.3/c.1.1=canceled child.3/case=canceled a.1.1=completed a! a>e case=completed",
		w.mustSettle())
}

// A child case that cannot be started fails its step, which the function answers; only a case that has ended refuses the record.
func TestAChildCaseThatCannotBeStarted(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	child.Accept = func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no number") }
	w := working(t, function(t, "w"), child)
	_, did := w.write(called("call", "child"), called("other", "nowhere"))
	require.Equal(t, "[call=failed [other=failed", did)
	require.Equal(t, "start workflow child: no number", w.host.step("call").Failure.Message)
	require.False(t, w.host.step("call").Failure.Retryable)
	require.Contains(t, w.host.step("other").Failure.Message, `"nowhere"; pass it to the engine when it is opened`)
	require.Equal(t, w.now, w.host.step("other").Ended)

	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "f")
	d.Hooks.OnInitialized = func(_ context.Context, c *activities.Case) error {
		_, err := c.Schedule(activities.NewJob{Name: "f", Detached: true})
		return err
	}
	v := newWorld(t, d, define(t, "child", "i>c c>e", net.Task{Name: "c"}))
	v.must("start")
	v.must("cancel")
	work, _ := v.claim()
	_, err := v.command(func(m *kernel.Machine) error {
		_, err := m.Steps().Record(work.Job, work.Fence, []*workitem.Step{called("call", "child")})
		return err
	})
	require.ErrorIs(t, err, activities.ErrInactive)
}

// A fresh item that resumes takes over what its predecessor's run had finished; what failed or waited is done again, and so are
// tokens. A plain retry takes over nothing.
func TestAResumedItemTakesOverSteps(t *testing.T) {
	for name, answer := range map[string]func(context.Context, *activities.Change) error{
		"resume": activities.Resume(retry.Constant(3, 0)), "retry": activities.Retry(retry.Constant(3, 0)),
	} {
		d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a",
			workflow.Task{Run: run, Hooks: activities.TaskHooks{OnWorkItemStateChanged: answer}})
		w := working(t, d)
		failed := done("failed", ``)
		failed.State, failed.Failure = workitem.StepFailed, workitem.Failf("bad", "it is")
		stored, _ := w.write(done("a", `1`), failed, &workitem.Step{Name: "token", Kind: workitem.StepToken, Target: "go"},
			awaited("wait", "go"), done("b", `2`))
		require.Len(t, stored, 5)
		_, err := w.command(func(m *kernel.Machine) error { return m.Messages().Redeem("token", &state.Message{}) })
		require.NoError(t, err)
		did, err := w.settle(w.work, workitem.Failf("busy", "later"))
		require.NoError(t, err)
		if name == "retry" {
			require.Equal(t, "run=done a.1.1=failed a.1.2=initialized +run", did)
			w.reclaim()
			require.Empty(t, w.work.Steps)
			continue
		}
		require.Equal(t, "run=done a.1.1=failed a.1.2=initialized +run [a=done [wait=done [b=done", did)
		w.reclaim()
		require.Len(t, w.work.Steps, 3)
		for i, s := range w.work.Steps {
			require.Equal(t, []string{"a", "wait", "b"}[i], s.Name)
			require.True(t, s.Copied)
			require.Equal(t, w.work.Item.ID, s.Item)
			require.Equal(t, w.work.Job, s.Job)
		}
		_, err = w.settle(w.work, workitem.Failf("busy", "later"))
		require.NoError(t, err)
		w.reclaim()
		require.Len(t, w.work.Steps, 3, "each run takes over from the one before it alone")
	}
}

// A run that restarts another one takes over its steps in its first item, which goes by the key of the work that it continues.
func TestARestartTakesOverSteps(t *testing.T) {
	d := with(define(t, "w", "i>a a>b b>e", tasks("a b")...), "a", workflow.Task{Run: run})
	with(d, "b", workflow.Task{Run: run})
	initialized := 0
	d.Tasks[0].ItemHooks.OnInitialized = func(context.Context, *activities.Item) error { initialized++; return nil }
	w := newWorld(t, d)
	w.jobs = true
	id, before, first := w.host.NewCaseID(w.now), w.host.NewCaseID(w.now), w.host.NewID(w.now)
	options, err := json.Marshal(map[string]any{"work": first})
	require.NoError(t, err)
	w.tree.Root = id
	finished := []*workitem.Step{done("a", `1`)}
	did, err := w.command(func(m *kernel.Machine) error {
		return m.Start(&state.Case{ID: id, Predecessor: before, Options: options}, d, nil, w.now, finished)
	})
	require.NoError(t, err)
	require.Equal(t, "a+1 a.1.1=initialized +run [a=done", did)
	require.Equal(t, 1, initialized)
	work, _ := w.claim()
	require.Len(t, work.Steps, 1)
	require.True(t, work.Steps[0].Copied)
	require.Equal(t, first, work.First, "the world knows the work by the key that it had")
	require.NotEqual(t, first, work.Item.ID)
	did, err = w.settle(work, nil)
	require.NoError(t, err)
	require.Equal(t, "run=done a.1.1=completed a! a>a->b b+1 b.1.1=initialized +run", did, "a later item takes over nothing")
	work, _ = w.claim()
	require.Empty(t, work.Steps)
	require.Equal(t, work.Item.ID, work.First)
}

// A worker learns which attempt it makes, of which first item, and since when that has been tried.
func TestAWorkerLearnsOfEarlierAttempts(t *testing.T) {
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a",
		workflow.Task{Run: run, Hooks: activities.TaskHooks{OnWorkItemStateChanged: activities.Retry(retry.Constant(3, time.Minute))}})
	w := working(t, d)
	began, first := w.now, w.work.Item.ID
	require.Equal(t, first, w.work.First)
	for attempt := 2; attempt <= 3; attempt++ {
		_, err := w.settle(w.work, workitem.Failf("busy", "later"))
		require.NoError(t, err)
		w.now = w.now.Add(time.Minute)
		w.reclaim()
		require.Equal(t, attempt, w.work.Attempt)
		require.Equal(t, first, w.work.First)
		require.Equal(t, began, w.work.Began)
		require.NotEqual(t, first, w.work.Item.ID)
	}
	require.JSONEq(t, `1`, string(w.work.Case.Input))
}
