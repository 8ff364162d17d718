package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// fatalSQL is SQL that ends its own connection.
type fatalSQL struct{ calls atomic.Int64 }

func (f *fatalSQL) run(ctx context.Context, db domain.DB) error {
	f.calls.Add(1)
	_, err := db.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
	return err
}

func (f *fatalSQL) onItem(ctx context.Context, it *activities.Item) error { return f.run(ctx, it.DB()) }

// task is a workflow with one task, which is done by a function unless it has a timeout.
func (f *fatalSQL) task(t *testing.T, name string, work builder.Work[any, any]) engine.Workflow {
	w := builder.New[any](name)
	if work.Timeout == 0 {
		work.Run = func(context.Context, any) (any, error) { return 1, nil }
	}
	w.Path(w.Start(), builder.Task(w, "task", work), w.End())
	built, err := w.Build()
	require.NoError(t, err)
	return built
}

// tries is how often the SQL of one request may end the connection.
const tries = 3

// SQL that ends its own connection each time it runs fails its command, wherever it is. What the engine does for a job is an attempt of the
// job, and a job that has no more of them becomes an incident. Other commands are not affected.
func TestSQLThatEndsItsConnectionFailsItsCommand(t *testing.T) {
	t.Parallel()
	f := new(fatalSQL)
	handler := builder.Handler("fatal", func(ctx context.Context, c *builder.Completion[int], _ int) error { return f.run(ctx, c.DB()) })
	step := builder.MustFunc("step", func(ctx context.Context, n int) (int, error) {
		return step.Tx(ctx, "effect", func(ctx context.Context, db domain.DB) (int, error) { return n, f.run(ctx, db) })
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	plain := builder.MustFunc("plain", func(_ context.Context, n int) (int, error) { return n, nil }, builder.Handles(handler))
	dsn := prepared.Database(t)
	e := enginetest.Open(t, postgres.Open(dsn), engine.Config{}, step, plain,
		f.task(t, "initialize", builder.Work[any, any]{Initialize: func(ctx context.Context, it *activities.Item, _ any) error { return f.onItem(ctx, it) }}),
		f.task(t, "start", builder.Work[any, any]{Start: f.onItem}),
		f.task(t, "complete", builder.Work[any, any]{Complete: func(ctx context.Context, it *activities.Item, _ any) error { return f.onItem(ctx, it) }}),
		f.task(t, "timer", builder.Work[any, any]{Timeout: time.Minute, Fail: func(ctx context.Context, it *activities.Item, _ *workitem.Failure) error {
			return f.onItem(ctx, it)
		}}))
	start := func(name string, opts ...workflow.Option) workitem.CaseID {
		t.Helper()
		r, err := e.Do(t.Context(), workflow.Start(name, []byte("1"), opts...))
		require.NoError(t, err)
		e.Drain()
		return r.Case
	}
	called := func(times int, what string) {
		t.Helper()
		require.EqualValues(t, times, f.calls.Swap(0), what)
		require.Equal(t, "completed: 1", ends(t, e.Engine, start("plain")), what)
	}

	require.Equal(t, "failed: error", ends(t, e.Engine, start("step")))
	called(tries, "the step has failed, and so has the attempt")

	_, err := e.Do(t.Context(), workflow.Start("initialize", nil))
	require.ErrorIs(t, err, store.ErrDisconnected)
	require.ErrorContains(t, err, "ends its own connection, 3 times")
	called(tries, "the caller has the error")

	left, err := json.Marshal(workflow.Start("initialize", nil))
	require.NoError(t, err)
	a, err := postgres.Post(t.Context(), dsn, left)
	require.NoError(t, err)
	require.Contains(t, a.Error, "ends its own connection")
	called(tries, "the other process has the error")

	require.Equal(t, "failed: invalid", ends(t, e.Engine, start("complete")))
	called(tries, "the result is refused, and the item has failed")

	start("timer")
	e.Advance(time.Minute)
	called(tries, "the timer has had an attempt")
	start("start")
	called(1+tries, "it was tried with the start of the case, and then as an attempt of the job")
	start("plain", builder.OnComplete(handler, 1))
	called(1+tries, "the case has completed, and a job calls the handler")

	attempts := make(map[string]int) // a job has at most ten
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		jobs, err := r.Jobs(t.Context(), store.JobFilter{States: []state.JobState{state.JobPending}})
		for _, j := range jobs {
			require.Contains(t, j.Failure.Message, "the SQL of the command ends its own connection")
			attempts[j.Kind] = j.Attempt
		}
		return err
	}))
	require.Equal(t, map[string]int{state.JobTimer: 1, state.JobRun: 1, state.JobHandler: 1}, attempts)
}
