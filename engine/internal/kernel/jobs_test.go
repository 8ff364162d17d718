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

// must is [world.do] of a command that is not refused.
func (w *world) must(text string) string {
	w.t.Helper()
	got, err := w.do(text)
	require.NoError(w.t, err, text)
	return got
}

// live lists the live jobs of the tree, oldest first.
func (w *world) live() (list []*state.Job) {
	w.tree.Each(func(c *state.Case) {
		for j := range c.Jobs.All() {
			list = append(list, j)
		}
	})
	return list
}

// claim gives the only live job to a worker, and returns what it did.
func (w *world) claim() (work *activities.Work, did string) {
	w.t.Helper()
	require.Len(w.t, w.live(), 1)
	id := w.live()[0].ID
	did, err := w.command(func(m *kernel.Machine) (err error) {
		work, err = m.Leases().Claim(id, "worker", w.now.Add(time.Minute))
		return err
	})
	require.NoError(w.t, err)
	return work, did
}

// settle hands a result in.
func (w *world) settle(work *activities.Work, failure *workitem.Failure) (string, error) {
	return w.command(func(m *kernel.Machine) error {
		return m.Leases().Settle(work.Job, work.Fence, json.RawMessage(`1`), failure)
	})
}

func run(context.Context, *activities.Work) (json.RawMessage, error) { return nil, nil }

// Rule 10: an item's change is delivered to its task before its consequences. Rule 17: a case's own hook is called before its
// tasks are enabled.
func TestRule10And17AChangeComesBeforeItsConsequences(t *testing.T) {
	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	w := newWorld(t, d)
	note := func(text string) { w.log = append(w.log, text) }
	ofCase := func(text string) func(context.Context, *activities.Case) error {
		return func(context.Context, *activities.Case) error { note("case " + text); return nil }
	}
	ofTask := func(text string) func(context.Context, *activities.Activation) error {
		return func(context.Context, *activities.Activation) error { note("task " + text); return nil }
	}
	ofItem := func(text string) func(context.Context, *activities.Item) error {
		return func(context.Context, *activities.Item) error { note("item " + text); return nil }
	}
	d.Hooks = activities.CaseHooks{OnInitialized: ofCase("initialized"), OnStarted: ofCase("started"), OnCompleted: ofCase("completed")}
	with(d, "a", workflow.Task{
		Hooks: activities.TaskHooks{OnEnabled: ofTask("enabled"), OnStarted: ofTask("started"), OnCompleted: ofTask("completed"),
			OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
				note("changed to " + c.Item.State.String())
				return nil
			}},
		ItemHooks: activities.ItemHooks{OnInitialized: ofItem("initialized"), OnStarted: ofItem("started"), OnCompleted: ofItem("completed")},
	})
	w.must("start")
	require.Equal(t, []string{"case initialized", "task enabled", "item initialized"}, w.log)
	w.log = nil
	w.must("begin a.1.1")
	require.Equal(t, []string{"case started", "task started", "item started", "changed to started"}, w.log)
	w.log = nil
	w.must("complete a.1.1")
	require.Equal(t, []string{"item completed", "changed to completed", "task completed", "case completed"}, w.log)
}

// Rule 14: a failed item is replaced by a fresh one with a job that is due after the wait, until the attempts are used up.
func TestRule14Retries(t *testing.T) {
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Run: run,
		Hooks: activities.TaskHooks{OnWorkItemStateChanged: activities.Retry(retry.Exponential(3, time.Second))}})
	w := newWorld(t, d)
	require.Equal(t, "a+1 a.1.1=initialized", w.must("start"))
	for attempt, want := range []string{"a.1.1=failed a.1.2=initialized", "a.1.2=failed a.1.3=initialized", "a.1.3=failed af case=failed"} {
		work, _ := w.claim()
		require.Equal(t, attempt+1, work.Attempt)
		did, err := w.settle(work, &workitem.Failure{Code: "busy", Retryable: true})
		require.NoError(t, err)
		require.Equal(t, want, did)
		if attempt < 2 {
			wait := time.Second << attempt
			require.Equal(t, wait, w.live()[0].Due.Sub(w.now))
			w.now = w.now.Add(wait)
		}
	}
	require.Empty(t, w.live())
}

// Rule 15: a composite task that completes early cancels its other child cases, with what they own.
func TestRule15ACompositeThatCompletesEarly(t *testing.T) {
	child := with(define(t, "child", "i>c c>e", net.Task{Name: "c"}), "c", workflow.Task{Run: run})
	parent := with(define(t, "parent", "i>a a>e", net.Task{Name: "a", Kind: net.Composite, Of: []string{"child"}}), "a", workflow.Task{
		Of: map[string]*workflow.Definition{"child": child}, Policy: workitem.Quorum(1),
		Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) {
			return make([]activities.NewCase, 2), nil
		}})
	w := newWorld(t, parent, child)
	require.Equal(t, "a+1 a.1.1/c+1 a.1.1/c.1.1=initialized a.1.2/c+1 a.1.2/c.1.1=initialized", w.must("start"))
	require.Len(t, w.live(), 2)
	require.Equal(t, "a*i a.1.1/c*i a.1.1/c.1.1=started", w.must("begin a.1.1/c.1.1"))
	require.Equal(t, "a.1.1/c.1.1=completed a.1.1/c! a.1.1/c>e a.1.1/case=completed a! a.1.2/c- a.1.2/c.1.1=canceled "+
		"a.1.2/case=canceled a>e case=completed", w.must("complete a.1.1/c.1.1"))
	require.Empty(t, w.live())
}

// Rule 19: the end of an item, by a reset too, cancels its job, and a late result of it is refused.
func TestRule19AJobEndsWithItsOwner(t *testing.T) {
	for _, end := range []string{"drop a.1.1", "complete a.1.1", "fail a.1.1", "reset a.1.1", "cancel"} {
		w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Run: run}))
		w.must("start")
		work, did := w.claim()
		require.Equal(t, "a*i a.1.1=started", did)
		w.must(end)
		_, err := w.settle(work, nil)
		require.ErrorIs(t, err, kernel.ErrLeaseLost, end)
	}
}

// Rule 20: a lost lease makes a job claimable again, and refuses who had it. A crash is not a failed attempt, and one job bears
// so many of them.
func TestRule20LeasesAndCrashes(t *testing.T) {
	w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Run: run}))
	w.must("start")
	crash := func(crashed bool) {
		work, _ := w.claim()
		require.Equal(t, 1, work.Run, "it counts as no attempt")
		_, err := w.command(func(m *kernel.Machine) error { _, err := m.Leases().Claim(work.Job, "other", w.now); return err })
		require.ErrorIs(t, err, kernel.ErrLeaseLost, "a worker has it")
		_, err = w.command(func(m *kernel.Machine) error { return m.Leases().Release(work.Job, work.Fence, crashed) })
		require.NoError(t, err)
		_, err = w.settle(work, nil)
		require.ErrorIs(t, err, kernel.ErrLeaseLost, "it is late")
	}
	for range kernel.MaxCrashes {
		crash(true)
	}
	crash(false) // a worker that stops in good order is no crash
	require.Len(t, w.live(), 1)
	crash(true)
	require.Len(t, w.live(), 1)
	require.Equal(t, state.JobIncident, w.live()[0].Kind, "it is given up")
	require.Equal(t, "a.1.1=initialized", w.must("reset a.1.1"))
	require.Len(t, w.live(), 1, "a reset has it done again")
}

// Rule 24: the timeout of an item counts from when it is due, and a person may start it before.
func TestRule24ATimeoutCountsFromWhenTheItemIsDue(t *testing.T) {
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{
		Hooks:  activities.TaskHooks{OnWorkItemStateChanged: activities.Retry(retry.Exponential(2, time.Hour))},
		Timers: []activities.Timer{{Name: "late", After: time.Minute, Item: func(ctx context.Context, it *activities.Item) error { return nil }}}})
	w := newWorld(t, d)
	w.must("start")
	require.Len(t, w.live(), 1)
	require.Equal(t, time.Minute, w.live()[0].Due.Sub(w.now))
	w.must("begin a.1.1")
	require.Equal(t, "a.1.1=failed a.1.2=initialized", w.must("fail a.1.1"))
	due := make(map[string]time.Duration)
	for _, j := range w.live() {
		due[j.Kind] = j.Due.Sub(w.now)
	}
	require.Equal(t, map[string]time.Duration{state.JobWake: time.Hour, state.JobTimer: time.Hour + time.Minute}, due)
	require.Equal(t, "a.1.2=started", w.must("begin a.1.2"), "it is tried now")
}
