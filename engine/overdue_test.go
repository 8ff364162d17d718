package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// blockedBy asks until the first wait of a case is blocked so.
func blockedBy(t *testing.T, e *enginetest.Engine, id workitem.CaseID, b why.Block) why.Wait {
	t.Helper()
	for {
		answer, err := e.Why(t.Context(), id)
		require.NoError(t, err)
		require.NotEmpty(t, answer.Waits)
		if answer.Waits[0].Blocked == b {
			return answer.Waits[0]
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("the wait is %+v", answer.Waits[0])
		}
	}
}

// What is overdue because the store fails says so, and since when.
func TestWhySaysThatTheStoreFails(t *testing.T) {
	ctx := t.Context()
	f := &faulty{Opener: sqlite.Memory(), kind: "FULL"}
	a := builder.MustFunc("a", echo, builder.Keep(builder.Forever))
	b := builder.New[any]("timed")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Timeout: time.Hour}), b.End())
	timed := b.MustBuild()
	e := enginetest.Open(t, f, engine.Config{Logger: slog.New(slog.DiscardHandler)}, a, timed)
	later, err := a.Run(ctx, e, 1, workflow.After(time.Hour))
	require.NoError(t, err)
	_, err = timed.Start(ctx, e, nil)
	require.NoError(t, err)
	e.Drain()
	f.commits.Store(1 << 30)
	e.Clock().Set(e.Now().Add(time.Hour))
	w := blockedBy(t, e, later.ID, why.Failing)
	require.True(t, w.Down.Equal(e.Now()), w.Down)
	require.Contains(t, w.Text, "the store has failed for 0")
	require.Contains(t, w.Text, "it is tried again until it works")
	f.commits.Store(0)
	e.Drain()
	got, err := later.Result(ctx, e)
	require.NoError(t, err)
	require.Equal(t, 1, got)
	noTrace(t, e)
}

// A job that is due, and that nothing of its queue goes before, waits for a worker.
func TestWhySaysThatAllWorkersAreBusy(t *testing.T) {
	ctx := t.Context()
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) {
		begun <- struct{}{}
		<-goOn
		return n, nil
	})
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: 1}, a)
	_, err := a.Run(ctx, e, 1)
	require.NoError(t, err)
	<-begun
	second, err := a.Run(ctx, e, 2)
	require.NoError(t, err)
	w := blockedBy(t, e, second.ID, why.Busy)
	require.Contains(t, w.Text, "all workers of the default queue are busy")
	close(goOn)
	e.Drain()
}
