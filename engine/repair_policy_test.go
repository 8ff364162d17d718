package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// changing returns an option with a number of attempts and a first wait.
func changing(attempts int, wait time.Duration) workflow.Option {
	return workflow.RetryPolicy(retry.Changes{Attempts: &attempts, Initial: &wait})
}

// attemptsUntilFailure repairs a failed case, advances the clock until it fails again, and returns when each new item became due, in
// seconds from now.
func attemptsUntilFailure(t *testing.T, e *enginetest.Engine, id workitem.CaseID, repair workflow.Command) (due []int) {
	t.Helper()
	from, known := e.Now(), len(allItems(t, e, id))
	require.NoError(t, enginetest.Do(t.Context(), e, repair))
	e.Drain()
	e.Advance(time.Hour)
	require.Equal(t, state.CaseFailed, caseOf(t, e, id).State)
	for _, it := range allItems(t, e, id)[known:] {
		due = append(due, int(max(it.Due.Sub(from), 0)/time.Second))
	}
	return due
}

func allItems(t *testing.T, e *enginetest.Engine, id workitem.CaseID) (all []*store.ItemRow) {
	t.Helper()
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Root: id}) {
		require.NoError(t, err)
		all = append(all, it)
	}
	return all
}

func TestARetryWithAnotherPolicyCountsAnew(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(2, time.Second))
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.Equal(t, []string{"order.1.1 failed", "order.1.2 failed"}, e.States(id))

	last := e.Item(id, "order.1.2")
	require.Equal(t, []int{0, 10, 20}, attemptsUntilFailure(t, e, id, workflow.Retry(last.ID, nil, changing(3, 10*time.Second))))
	require.Len(t, allItems(t, e, id), 5)
	require.Equal(t, 5, e.Item(id, "order.1.5").Attempt, "attempts are numbered over all of them")

	require.Equal(t, []int{0}, attemptsUntilFailure(t, e, id, workflow.Retry(e.Item(id, "order.1.5").ID, nil)), "without a policy, the count goes on")

	attempts := 2
	require.Equal(t, []int{0, 10}, attemptsUntilFailure(t, e, id, workflow.Resume(id, nil, workflow.RetryPolicy(retry.Changes{Attempts: &attempts}))), "field by field: the wait is that of the first repair")

	e.Crash()
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Retry(e.Item(id, "order.1.8").ID, nil, workflow.RetryPolicy(retry.Changes{}))))
	e.Drain()
	e.Crash() // between two attempts
	e.Advance(time.Hour)
	require.Len(t, allItems(t, e, id), 10, "no changes: two attempts again, also in another process")
}

func TestAWaitingItemGetsAnotherPolicy(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(2, time.Hour))
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	waiting := e.Item(id, "order.1.2")
	require.Equal(t, workitem.Initialized, waiting.State)
	result, err := e.Do(t.Context(), workflow.Retry(waiting.ID, nil, changing(3, time.Minute)))
	require.NoError(t, err)
	require.Equal(t, waiting.ID, result.Item, "the item that waits goes on itself, now")
	e.Crash()
	e.Drain()
	e.Advance(time.Hour)
	require.Equal(t, []string{"order.1.1 failed", "order.1.2 failed", "order.1.3 failed", "order.1.4 failed"}, e.States(id))
	require.Equal(t, time.Minute, e.Item(id, "order.1.4").Due.Sub(e.Item(id, "order.1.3").Ended))
}

// alwaysFailing is a workflow with a task whose work always fails, and a loop back to it.
func alwaysFailing(t *testing.T, answer func(context.Context, *activities.Change) error) (*builder.Workflow[string], *builder.TaskRef[string, string]) {
	t.Helper()
	b := builder.New[string]("broken")
	work := builder.Task(b, "work", builder.Work[string, string]{Input: builder.CaseInput(b), OnWorkItemStateChanged: answer,
		Run: func(_ context.Context, in string) (string, error) {
			return "", workitem.Failf("broken", "%s", in)
		}})
	b.Path(b.Start(), work, b.End())
	return b.MustBuild(), work
}

func TestWorkWithoutARetryPolicyGetsOne(t *testing.T) {
	t.Parallel()
	seen := 0
	w, work := alwaysFailing(t, func(_ context.Context, c *activities.Change) error {
		if c.To == workitem.Failed {
			seen++
		}
		return nil
	})
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, "x")
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []int{0, 5, 15}, attemptsUntilFailure(t, e, id, workflow.Retry(e.Item(id, "work.1.1").ID, nil, changing(3, 5*time.Second))), "the waits double, unless the repair says otherwise")
	require.Equal(t, 4, seen, "its own activity is called, too")

	require.NoError(t, work.RetryWith(t.Context(), e, e.Item(id, "work.1.4").ID, "y", changing(1, 0)))
	e.Drain()
	require.Equal(t, "broken: y", e.Item(id, "work.1.5").Failure.String(), "with another input and policy")
}

func TestAnActivityThatRetriesItselfHasTheLastWord(t *testing.T) {
	t.Parallel()
	w, work := alwaysFailing(t, func(ctx context.Context, c *activities.Change) error {
		if c.To != workitem.Failed || c.Item.Attempt > 2 {
			return nil
		}
		_, err := c.Again(ctx, time.Minute)
		return err
	})
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, "x")
	require.NoError(t, err)
	e.Drain()
	require.NoError(t, work.Retry(t.Context(), e, e.Item(id, "work.1.2").ID, changing(2, time.Second)))
	e.Drain()
	require.Equal(t, []string{"work.1.1 failed", "work.1.2 failed", "work.1.3 initialized"}, e.States(id), "one successor, of the activity")
	require.Equal(t, time.Minute, e.Item(id, "work.1.3").Due.Sub(e.Item(id, "work.1.2").Ended))
}

func TestAHiddenRetryTakesThePolicyOfARepair(t *testing.T) {
	t.Parallel()
	w, _ := alwaysFailing(t, func(ctx context.Context, c *activities.Change) error {
		return activities.Retry(retry.Constant(2, 3*time.Second))(ctx, c)
	})
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, "x")
	require.NoError(t, err)
	e.Advance(time.Minute)
	attempts := 3
	again := workflow.Retry(e.Item(id, "work.1.2").ID, nil, workflow.RetryPolicy(retry.Changes{Attempts: &attempts}))
	require.Equal(t, []int{0, 3, 6}, attemptsUntilFailure(t, e, id, again), "its own waits, three attempts")
}

func TestTheRetryPolicyOfARepairIsChecked(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(2, time.Second))
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Advance(time.Minute)
	last := e.Item(id, "order.1.2")
	for _, c := range []workflow.Command{
		workflow.Retry(last.ID, nil, changing(0, 0)), workflow.Retry(last.ID, nil, changing(2, -time.Second)), workflow.Resume(id, nil, changing(0, 0)),
	} {
		_, err := e.Do(t.Context(), c)
		require.ErrorIs(t, err, workflow.ErrBadCommand)
		require.Equal(t, "bad-command", engine.Code(err))
		require.ErrorContains(t, err, "retry policy")
	}
	_, err = e.Do(t.Context(), workflow.Skip(last.ID, nil, changing(2, 0)))
	require.ErrorContains(t, err, `a skip command takes no "retry"`)
	require.Len(t, allItems(t, e, id), 2, "nothing was done")
}

func TestTheOwnPolicyOfARunIsChangedByARepair(t *testing.T) {
	t.Parallel()
	f := builder.MustFunc("pay", func(context.Context, string) (string, error) { return "", workitem.Failf("no-funds", "none") })
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, "x", builder.Retry(func(p *retry.Policy) { *p = retry.Constant(1, 7*time.Second) }))
	require.NoError(t, err)
	e.Drain()
	attempts := 3
	again := workflow.Resume(run.ID, nil, workflow.RetryPolicy(retry.Changes{Attempts: &attempts}))
	require.Equal(t, []int{0, 7, 14}, attemptsUntilFailure(t, e, run.ID, again), "the waits are those of the run")
}
