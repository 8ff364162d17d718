package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A run that is started while its workflow is suspended is suspended itself, over a restart too, and stays so when the workflow is
// resumed. A run that was there before is not affected.
func TestNewRunsOfASuspendedWorkflowBeginSuspended(t *testing.T) {
	t.Parallel()
	var done []int
	work := builder.MustFunc("work", func(_ context.Context, n int) (int, error) {
		done = append(done, n)
		return n, nil
	})
	other := builder.MustFunc("other", func(_ context.Context, n int) (int, error) { return n, nil })
	e := enginetest.New(t, work, other)
	start := func(n int, opts ...workflow.Option) workitem.CaseID {
		run, err := work.Run(t.Context(), e, n, opts...)
		require.NoError(t, err)
		return run.ID
	}
	start(1, workflow.After(time.Minute))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SuspendWorkflow("work", workflow.By("ann"), workflow.Because("the bank is closed"))))
	held := start(2)
	later := start(3, workflow.After(time.Minute))
	free, err := other.Run(t.Context(), e, 7)
	require.NoError(t, err)
	e.Drain()
	out, err := free.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 7, out)
	e.Advance(time.Hour)
	require.Equal(t, []int{1}, done)
	require.Equal(t, []workitem.CaseID{held, later}, suspended(t, e))
	answer, err := e.Why(t.Context(), held)
	require.NoError(t, err)
	require.Contains(t, answer.String(), "the case is suspended by ann for 1h (the bank is closed)")
	require.Equal(t, why.Suspended, answer.Waits[0].Blocked)
	require.Empty(t, e.Overdue())

	e.Crash()
	start(4)
	e.Drain()
	require.Equal(t, []int{1}, done, "the suspension is stored")

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.ResumeWorkflow("work")))
	start(5)
	e.Drain()
	require.Equal(t, []int{1, 5}, done)
	for _, id := range []workitem.CaseID{held, later} {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, nil)))
		e.Drain() // one at a time
	}
	require.Equal(t, []int{1, 5, 2, 3}, done)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		all, err := r.Settings(t.Context())
		require.NoError(t, err)
		left, err := store.ReadSuspensions(all)
		require.Empty(t, left)
		return err
	}))
}

// A case in the transaction that suspends its workflow is suspended. If the transaction fails, no case is, not even one that is
// created before the settings are read again.
func TestASuspensionOfAWorkflowThatIsUndoneSuspendsNoCase(t *testing.T) {
	t.Parallel()
	work := builder.MustFunc("work", func(_ context.Context, n int) (int, error) { return n, nil })
	e := enginetest.New(t, work)
	suspendAndStart := func(n int, failure error) error {
		return e.Update(t.Context(), func(tx *engine.Tx) error {
			_, err := tx.Do(t.Context(), workflow.SuspendWorkflow("work", workflow.Because("a test")))
			require.NoError(t, err)
			_, err = work.Run(t.Context(), tx, n)
			require.NoError(t, err)
			return failure
		})
	}
	undone := errors.New("undone")
	for n := range 50 {
		require.ErrorIs(t, suspendAndStart(-n, undone), undone)
		_, err := work.Run(t.Context(), e, n)
		require.NoError(t, err)
	}
	require.Empty(t, suspended(t, e))
	require.NoError(t, suspendAndStart(100, nil))
	require.Len(t, suspended(t, e), 1)
	e.Drain()
}

// A child case of a suspended workflow begins suspended: its work item is there, and cannot be started until the child is resumed.
func TestChildCasesOfASuspendedWorkflowBeginSuspended(t *testing.T) {
	t.Parallel()
	p := builder.New[any]("parcel")
	pack := builder.Task(p, "pack", builder.Work[any, any]{})
	p.Path(p.Start(), pack, p.End())
	b := builder.New[any]("order")
	ship := builder.Composite(b, "ship", p.MustBuild(), builder.Cases[any]{})
	b.Path(b.Start(), ship, b.End())
	order := b.MustBuild()
	e := enginetest.New(t, order)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SuspendWorkflow("parcel", workflow.Because("no boxes"))))
	root, err := e.Do(t.Context(), workflow.Start("order", nil))
	require.NoError(t, err)
	e.Drain()
	held := suspended(t, e)
	require.Len(t, held, 1)
	require.NotEqual(t, root.Case, held[0], "the order itself is not suspended")
	var item workitem.ID
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Root: root.Case}) {
		require.NoError(t, err)
		item = it.ID
	}
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Act(item, workitem.Start, nil)), workflow.ErrSuspended)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(held[0], nil)))
	for _, action := range []workitem.Action{workitem.Start, workitem.Complete} {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(item, action, nil)))
	}
	e.Drain()
	require.Empty(t, suspended(t, e))
}

// Other engines learn that a workflow is suspended.
func TestEnginesLearnOfSuspendedWorkflows(t *testing.T) {
	f := newFleet(t)
	work := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("work", func(_ context.Context, n int) (int, error) { return n, nil })
	}
	one, two := f.open(engine.Config{}, work()), f.open(engine.Config{}, work())
	command(t, one, workflow.SuspendWorkflow("work"))
	n := 0
	require.Eventually(t, func() bool {
		n++
		run, err := work().Run(t.Context(), two, n)
		require.NoError(t, err)
		info, err := run.Status(t.Context(), two)
		require.NoError(t, err)
		return info.State == workflow.RunSuspended
	}, time.Minute, 10*time.Millisecond)
	command(t, one, workflow.ResumeWorkflow("work"))
	require.Eventually(t, func() bool {
		n++
		run, err := work().Run(t.Context(), two, n)
		require.NoError(t, err)
		info, err := run.Status(t.Context(), two)
		require.NoError(t, err)
		return info.State != workflow.RunSuspended
	}, time.Minute, 10*time.Millisecond)
}
