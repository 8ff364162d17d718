package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// timed starts a case whose one task has these timers.
func timed(t *testing.T, timers ...activities.Timer) (*enginetest.Engine, workitem.CaseID) {
	t.Helper()
	b := builder.New[any]("timed")
	task := builder.Task(b, "t", builder.Work[any, any]{Timers: timers,
		Items: func(context.Context, *activities.Activation) ([]any, error) { return make([]any, 2), nil }})
	b.Path(b.Start(), task, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	return e, id
}

func TestCancelTaskAfterCancelsWhatIsLive(t *testing.T) {
	e, id := timed(t, activities.CancelTaskAfter(time.Hour))
	do(t, e, "t.1.1", workitem.Start, workitem.Complete)
	e.Advance(time.Hour)
	require.Equal(t, []string{"t.1.1 completed 1", "t.1.2 canceled 1 timeout"}, items(t, e, id))
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

func TestATimeoutFails(t *testing.T) {
	for name, timer := range map[string]activities.Timer{
		"of an item": activities.Timeout(time.Hour), "of a task": activities.TimeoutTask(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			e, id := timed(t, timer)
			do(t, e, "t.1.1", workitem.Start, workitem.Complete)
			e.Advance(time.Hour)
			c, err := e.Case(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, state.CaseFailed, c.State)
			require.Equal(t, workitem.CodeTimeout, c.Failure.Code)
			require.Equal(t, []string{"t.1.1 completed 1", "t.1.2 failed 1 timeout"}, items(t, e, id))
		})
	}
}

func TestCancelAfterCancels(t *testing.T) {
	e, id := timed(t, activities.CancelAfter(time.Hour))
	e.Advance(time.Hour)
	require.Equal(t, []string{"t.1.1 canceled 1 timeout", "t.1.2 canceled 1 timeout"}, items(t, e, id))
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

func TestAnEscalationIsCalledOncePerItem(t *testing.T) {
	var raised []string
	raise := func(_ context.Context, it *activities.Item) error {
		raised = append(raised, it.Label())
		return nil
	}
	e, _ := timed(t, activities.Escalate("boss", time.Hour, raise))
	do(t, e, "t.1.1", workitem.Start, workitem.Complete)
	e.Advance(3 * time.Hour)
	require.Equal(t, []string{"t.1.2"}, raised, "only what is still live is escalated")
}

func TestFailingTimerIsPostponedAndThenGivenUp(t *testing.T) {
	calls := 0
	e, id := timed(t, activities.Timer{Name: "broken", After: time.Minute, Task: func(context.Context, *activities.Activation) error {
		calls++
		return errors.New("no connection")
	}})
	e.Advance(24 * time.Hour)
	require.Equal(t, 10, calls)
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: id}) {
		require.NoError(t, err)
		want := state.JobFailed
		if j.Kind == state.JobIncident {
			want = state.JobWaiting
			require.Equal(t, state.IncidentTimer, j.Name)
		}
		require.Equal(t, want, j.State)
		require.Contains(t, j.Failure.Message, "no connection")
	}
}

func TestAllRunsInOrderUntilTheFirstError(t *testing.T) {
	var told []int
	tell := func(n int, err error) func(context.Context, string) error {
		return func(context.Context, string) error {
			told = append(told, n)
			return err
		}
	}
	stop := errors.New("stop")
	err := activities.All(tell(1, nil), nil, tell(2, stop), tell(3, nil))(t.Context(), "")
	require.ErrorIs(t, err, stop)
	require.Equal(t, []int{1, 2}, told)
}
