package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// suspended lists the cases that are.
func suspended(t testing.TB, v store.Viewer) (ids []workitem.CaseID) {
	t.Helper()
	for c, err := range store.AllCases(t.Context(), v, store.CaseFilter{Suspended: true}) {
		require.NoError(t, err)
		ids = append(ids, c.ID)
	}
	return ids
}

// A second suspension changes nothing, unless it has another reason: who suspended the case, when and why stays known.
func TestASecondSuspensionKeepsTheFirst(t *testing.T) {
	t.Parallel()
	work := builder.MustFunc("work", func(_ context.Context, n int) (int, error) { return n, nil })
	e := enginetest.Open(t, sqlite.Memory(), engine.Config{Workers: -1}, work)
	run, err := work.Run(t.Context(), e, 1)
	require.NoError(t, err)
	for _, c := range []struct{ by, reason, want, why string }{
		{"ann", "an audit", "ann", "an audit"}, {"bob", "", "ann", "an audit"}, {"bob", "an audit", "ann", "an audit"}, {"bob", "a fraud", "bob", "a fraud"},
	} {
		e.Advance(time.Minute)
		opts := []workflow.Option{workflow.By(c.by), workflow.Key(c.by + c.reason)}
		if c.reason != "" {
			opts = append(opts, workflow.Because(c.reason))
		}
		require.NoError(t, run.Suspend(t.Context(), e, opts...))
		for found, err := range store.AllCases(t.Context(), e, store.CaseFilter{Suspended: true}) {
			require.NoError(t, err)
			require.Equal(t, []string{c.want, c.why}, []string{found.Suspended.By, found.Suspended.Reason})
		}
	}
}

// A worker that has a job continues, and its result counts. What its end makes due waits, over a restart too, is not overdue, and
// begins when the case is resumed.
func TestNothingOfASuspendedCaseBegins(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	calls := 0
	work, err := builder.Func("work", func(_ context.Context, n int) (int, error) {
		if calls++; calls == 1 {
			close(entered)
			<-leave
			return 0, &workitem.Failure{Code: "down", Retryable: true}
		}
		return n + 1, nil
	}, builder.Retry(func(p *retry.Policy) { *p = retry.Constant(3, time.Minute) }))
	require.NoError(t, err)
	e := enginetest.New(t, work)
	run, err := work.Run(t.Context(), e, 1)
	require.NoError(t, err)
	<-entered
	require.NoError(t, run.Suspend(t.Context(), e, workflow.By("ann"), workflow.Because("an audit")))
	info, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunRunning, info.State, "what runs may end")
	close(leave)
	e.Drain()
	e.Advance(time.Hour)
	require.Equal(t, 1, calls)
	info, err = run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunSuspended, info.State)
	require.Empty(t, e.Overdue(), "it waits for the resume, and not for a worker")
	require.Equal(t, []workitem.CaseID{run.ID}, suspended(t, e))

	answer, err := e.Why(t.Context(), run.ID)
	require.NoError(t, err)
	require.Equal(t, "ann", answer.Suspended.By)
	require.Equal(t, "an audit", answer.Suspended.Reason)
	require.Contains(t, answer.String(), "the case is suspended by ann for 1h (an audit)")
	require.Len(t, answer.Waits, 1)
	require.Equal(t, why.Suspended, answer.Waits[0].Blocked)

	e.Crash()
	e.Advance(time.Hour)
	require.Equal(t, 1, calls)
	require.Equal(t, []workitem.CaseID{run.ID}, suspended(t, e))
	require.NoError(t, run.Resume(t.Context(), e, workflow.By("bob"), workflow.Because("the audit is over")))
	e.Drain()
	out, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 2, out)
	require.Equal(t, 2, calls)
	require.Equal(t, []string{"bob resume: the audit is over"}, notes(t, e, run.ID))
	require.ErrorIs(t, run.Suspend(t.Context(), e), engine.ErrInactive)
	e.Check()
}

// An event that is sent to a suspended case is kept for it, and a sleep that is over ends when the case continues.
func TestASuspendedCaseKeepsEvents(t *testing.T) {
	t.Parallel()
	slept := false
	work, err := builder.Func("work", func(ctx context.Context, _ int) (string, error) {
		if err := step.Sleep(ctx, "nap", time.Minute); err != nil {
			return "", err
		}
		slept = true
		return step.Await[string](ctx, "reply")
	})
	require.NoError(t, err)
	e := enginetest.New(t, work)
	run, err := work.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	require.NoError(t, run.Suspend(t.Context(), e))
	e.Advance(time.Hour)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(run.ID, "reply", "yes")))
	e.Drain()
	require.False(t, slept)
	require.NoError(t, run.Resume(t.Context(), e))
	e.Drain()
	out, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "yes", out)
}

// Jobs that wait for a resume begin once each, also one that was brought forward meanwhile, and one that was canceled does not.
func TestEachJobOfASuspendedCaseBeginsOnce(t *testing.T) {
	t.Parallel()
	began := make(map[string]int)
	b := builder.New[string]("many")
	many := builder.Task(b, "many", builder.Work[string, string]{
		Input: builder.CaseInput(b),
		Run: func(_ context.Context, name string) (string, error) {
			began[name]++
			return name, nil
		},
	})
	b.Path(b.Start(), many, b.End())
	d, err := b.Build()
	require.NoError(t, err)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: 1}, d)
	var id workitem.CaseID
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) (err error) {
		if id, err = d.Start(t.Context(), tx, "first"); err == nil {
			_, err = tx.Do(t.Context(), workflow.Suspend(id))
		}
		return err
	}))
	var items []workitem.ID
	for _, name := range []string{"a", "b", "c", "d"} {
		raw, err := json.Marshal(name)
		require.NoError(t, err)
		r, err := e.Do(t.Context(), workflow.AddItem(id, "many", raw, workflow.After(time.Minute)))
		require.NoError(t, err)
		items = append(items, r.Item)
	}
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Retry(items[0], nil)))
	e.Advance(30 * time.Second)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.CancelItem(items[3], nil)))
	e.Advance(time.Hour)
	require.Empty(t, began)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, nil)))
	e.Drain()
	require.Equal(t, map[string]int{"first": 1, "a": 1, "b": 1, "c": 1}, began)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, id).State)
	e.Check()
}
