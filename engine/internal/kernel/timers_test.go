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
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// timed is a case of one task with the timers, where the item a.1.1 waits.
func timed(t *testing.T, spec workflow.Task, timers ...activities.Timer) *world {
	t.Helper()
	spec.Timers = timers
	w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", spec))
	w.must("start")
	w.now = w.now.Add(time.Minute)
	return w
}

// putOff has the only job wait after a failure.
func (w *world) putOff(most int, force kernel.ForcedEnd) (string, error) {
	w.t.Helper()
	require.Len(w.t, w.live(), 1)
	id := w.live()[0].ID
	return w.command(func(m *kernel.Machine) error {
		return m.Timers().Postpone(id, time.Second, most, workitem.Failf("refused", "by %s", "it"), force)
	})
}

// A timer acts once, and says that it was a timer. What it does to items of its task is up to it.
func TestATimerFires(t *testing.T) {
	var cause activities.Cause
	w := timed(t, workflow.Task{}, activities.Timer{Name: "look", After: time.Minute, Task: func(_ context.Context, a *activities.Activation) error {
		cause = a.Cause()
		return a.Ask(a.Items()[0], workitem.Start, nil)
	}})
	w.jobs = true
	id := w.live()[0].ID
	did, err := w.fire("look")
	require.NoError(t, err)
	require.Equal(t, "=done case* a*i a.1.1=started", did)
	require.Equal(t, activities.CauseTimer, cause)
	require.Equal(t, 1, w.last[0].(*state.JobMoved).Attempt)
	_, err = w.command(func(m *kernel.Machine) error { return m.Timers().Fire(id) })
	require.ErrorIs(t, err, kernel.ErrNotFound)
}

// A timeout of a started item fails it as it is. One that nothing has started is started first, without its Start
// callback.
func TestATimeoutDoesNotBeginTheWork(t *testing.T) {
	var log []string
	note := func(text string) func(context.Context, *activities.Item) error {
		return func(context.Context, *activities.Item) error { log = append(log, text); return nil }
	}
	spec := workflow.Task{
		Actions: map[workitem.Action]func(context.Context, *activities.Item, json.RawMessage) error{
			workitem.Start: func(context.Context, *activities.Item, json.RawMessage) error { log = append(log, "start"); return nil },
			workitem.Fail:  func(context.Context, *activities.Item, json.RawMessage) error { log = append(log, "fail"); return nil },
		},
		ItemHooks: activities.ItemHooks{OnStarted: note("onStarted"), OnFailed: note("onFailed")},
	}
	w := timed(t, spec, activities.Timeout(time.Minute))
	did, err := w.fire("timeout")
	require.NoError(t, err)
	require.Equal(t, "a*i a.1.1=started a.1.1=failed af case=failed", did)
	require.Equal(t, []string{"onStarted", "fail", "onFailed"}, log)

	log = nil
	w = timed(t, spec, activities.Timeout(time.Minute))
	w.must("begin a.1.1")
	did, err = w.fire("timeout")
	require.NoError(t, err)
	require.Equal(t, "a.1.1=failed af case=failed", did)
	require.Equal(t, []string{"start", "onStarted", "fail", "onFailed"}, log)
	require.Contains(t, w.root().Failure.Message, "not done within 1m0s")
}

// A timer whose callback fails waits and is tried again, until it is given up. One that decides nothing by itself ends
// nothing then.
func TestATimerIsPutOff(t *testing.T) {
	w := timed(t, workflow.Task{}, activities.Timer{Name: "look", After: time.Minute,
		Item: func(context.Context, *activities.Item) error { return errors.New("broken") }})
	_, err := w.fire("look")
	require.EqualError(t, err, "timer look of w/a: broken")
	did, err := w.putOff(2, kernel.EndWithoutHooks)
	require.NoError(t, err)
	require.Empty(t, did)
	j := w.live()[0]
	require.Equal(t, w.now.Add(time.Second), j.Due)
	require.Equal(t, 1, j.Attempt)
	require.Equal(t, "refused", j.Failure.Code)
	id := j.ID
	did, err = w.putOff(2, kernel.EndWithoutHooks)
	require.NoError(t, err)
	require.Equal(t, "note:incident", did)
	require.Equal(t, 2, w.last[0].(*state.JobMoved).Attempt)
	require.Equal(t, workitem.Initialized, w.root().Items.Slice()[0].State)
	_, err = w.command(func(m *kernel.Machine) error { return m.Timers().Postpone(id, 0, 2, nil, kernel.EndWithoutHooks) })
	require.ErrorIs(t, err, kernel.ErrNotFound)
}

// A timer that ends items does so without the callbacks that refuse it, as far as force allows: first without
// those of the item, then without that of its task. At last the items stay as they are.
func TestATimerThatIsRefused(t *testing.T) {
	refuse := errors.New("no")
	var log []string
	spec := workflow.Task{
		Actions: map[workitem.Action]func(context.Context, *activities.Item, json.RawMessage) error{
			workitem.Fail: func(context.Context, *activities.Item, json.RawMessage) error {
				log = append(log, "fail")
				return refuse
			}},
		ItemHooks: activities.ItemHooks{OnFailed: func(context.Context, *activities.Item) error { log = append(log, "onFailed"); return refuse }},
		Hooks: activities.TaskHooks{OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
			log = append(log, "changed to "+c.To.String())
			return nil
		}},
	}
	for _, test := range []struct {
		force kernel.ForcedEnd
		did   string
		log   []string
	}{
		{kernel.EndWithoutHooks, "note:incident note:incident a*i a.1.1=started a.1.1=failed af case=failed",
			[]string{"changed to started", "changed to failed"}},
		{kernel.EndWithoutTask, "note:incident note:incident a*i a.1.1=started a.1.1=failed af case=failed", nil},
		{kernel.EndNothing, "note:incident", nil},
	} {
		log = nil
		w := timed(t, spec, activities.Timeout(time.Minute))
		_, err := w.fire("timeout")
		require.ErrorIs(t, err, refuse)
		log = nil
		did, err := w.putOff(1, test.force)
		require.NoError(t, err)
		require.Equal(t, test.did, did)
		require.Equal(t, test.log, log)
		if test.force == kernel.EndNothing {
			continue
		}
		failure := w.root().Failure
		require.Equal(t, workitem.CodeTimeout, failure.Code)
		require.JSONEq(t, `{"code":"refused","message":"by it","retryable":true}`, string(failure.Details))
		require.Contains(t, w.last[0].(*state.Noted).Text,
			"timer timeout: fail of work item a.1.1 without its callbacks, which refused it 1 times: refused: by it")
	}
}

// The timer of a task ends the live items of its activation and no others; that of an item ends its own.
func TestATimerEndsWhatItIsFor(t *testing.T) {
	flows := "i>s s>p s>q p>a q>b a>e b>e"
	def := func(timer activities.Timer) *workflow.Definition {
		d := define(t, "w", flows, tasks("s a b")...)
		with(d, "b", workflow.Task{})
		return with(d, "a", workflow.Task{Inputs: items(3), Timers: []activities.Timer{timer}, Policy: workitem.ContinueOnFailure()})
	}
	for timer, want := range map[*activities.Timer]string{
		ptr(activities.TimeoutTask(time.Minute)): "note:incident note:incident note:incident " +
			"a.1.2=started a.1.2=failed a.1.3=started a.1.3=failed a! a>e b- b.1.1=canceled case=completed(q)",
		ptr(activities.CancelTaskAfter(time.Minute)): "note:incident note:incident note:incident " +
			"a.1.2=canceled a.1.3=canceled a! a>e b- b.1.1=canceled case=completed(q)",
	} {
		w := newWorld(t, def(*timer))
		w.must("start")
		w.must("begin s.1.1")
		w.must("complete s.1.1")
		w.must("begin a.1.1")
		w.must("complete a.1.1")
		did, err := w.putOff(1, kernel.EndWithoutHooks)
		require.NoError(t, err)
		require.Equal(t, want, did)
	}
	w := newWorld(t, def(activities.CancelAfter(time.Minute)))
	w.must("start")
	w.must("begin s.1.1")
	w.must("complete s.1.1")
	second := w.live()[1]
	did, err := w.command(func(m *kernel.Machine) error {
		return m.Timers().Postpone(second.ID, 0, 1, workitem.Failf("refused", ""), kernel.EndWithoutHooks)
	})
	require.NoError(t, err)
	require.Equal(t, "note:incident note:incident a.1.2=canceled", did)
}

func ptr[T any](v T) *T { return &v }

// A timer that the definition no longer names does nothing, and is done.
func TestATimerThatIsNotDefined(t *testing.T) {
	w := timed(t, workflow.Task{}, activities.Timeout(time.Minute))
	w.host.defs[0].Tasks[0].Timers = nil
	did, err := w.fire("timeout")
	require.NoError(t, err)
	require.Empty(t, did)
	require.Empty(t, w.live())
}

// A reset takes the timers of an item with it, and has its work done once more from now.
func TestAResetReplacesTimersAndJobs(t *testing.T) {
	w := timed(t, workflow.Task{Run: run, Queue: "q", Priority: 4}, activities.Timeout(time.Hour))
	w.jobs = true
	w.must("begin a.1.1")
	require.Equal(t, "a.1.1=initialized =canceled =canceled +run", w.must("reset a.1.1"))
	j := w.live()[0]
	require.Equal(t, w.now, j.Due)
	require.Equal(t, "q", j.Queue)
	require.Equal(t, 4, j.Priority)
	require.Equal(t, "case* a.1.1=started", "case* "+w.must("begin a.1.1"))
}
