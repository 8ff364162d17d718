package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A run may choose the queue of its jobs: here the only one that the engine does. Attempts and what is done after a crash are in it too.
func TestARunChoosesItsQueue(t *testing.T) {
	tries := 0
	f := builder.MustFunc("f", func(ctx context.Context, n int) (string, error) {
		w, _ := builder.WorkFrom(ctx)
		if tries++; tries == 1 {
			return "", errors.New("once more")
		}
		return w.Queue, nil
	}, builder.OnQueue("slow"))
	cfg := engine.Config{Workers: -1, Queues: map[string]int{"urgent": 1}}
	e := enginetest.Open(t, enginetest.Store(t), cfg, f)
	waits, err := f.Run(t.Context(), e, 1)
	require.NoError(t, err)
	run, err := f.Run(t.Context(), e, 2, workflow.Queue("urgent"), workflow.After(time.Minute))
	require.NoError(t, err)
	e.Crash()
	e.Advance(2 * time.Minute)
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunCompleted, s.State)
	require.Equal(t, "urgent", s.Value)
	require.Equal(t, 2, tries)
	s, err = waits.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunPending, s.State, "the other run has the queue of its function")
}

// A case that chooses a queue has its workers' items and its functions in it; what people do stays in the queue of the task.
func TestACaseChoosesTheQueueOfItsJobs(t *testing.T) {
	b := builder.New[string]("w")
	run := builder.Task(b, "run", builder.Work[string, string]{Input: builder.CaseInput(b), Queue: "machines",
		Run: func(_ context.Context, in string) (string, error) { return in, nil }})
	person := builder.Task(b, "read", builder.Work[any, any]{Queue: "people"})
	job := builder.Job(b, "job", func(context.Context, string) error { return nil }, builder.JobOptions{Queue: "jobs"})
	b.OnStarted(func(_ context.Context, c *activities.Case) error {
		_, err := job.After(c, time.Hour, "x")
		return err
	})
	b.Path(b.Start(), run, person, b.End())
	flow, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, flow)
	id, err := flow.Start(t.Context(), e, "in", workflow.Queue("urgent"))
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, "urgent", e.Item(id, "run.1.1").Queue)
	require.Equal(t, "people", e.Item(id, "read.1.1").Queue)
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{}) {
		require.NoError(t, err)
		require.Equal(t, "urgent", j.Queue, j.Kind)
	}
}

// Done is closed when the run has ended, and when there is none; it is not by the end of the context.
func TestDoneOfARun(t *testing.T) {
	f := builder.MustFunc("f", func(_ context.Context, n int) (int, error) { return n, nil })
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, 1, workflow.After(time.Hour))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	given, waited := run.Done(ctx, e), run.Done(t.Context(), e)
	cancel()
	e.Advance(time.Minute)
	select {
	case <-waited:
		require.Fail(t, "the run has not begun")
	default:
	}
	e.Advance(time.Hour)
	<-waited
	out, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 1, out)
	select {
	case <-given: // its wait ended long before that of the other
		require.Fail(t, "the context ended, and not the run")
	default:
	}
	<-f.Of(workitem.CaseID{1}).Done(t.Context(), e)
}

// The run of another engine is waited for, too.
func TestDoneOfARunElsewhere(t *testing.T) {
	f := newFleet(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", func(_ context.Context, n int) (int, error) {
			close(begun)
			<-goOn
			return n, nil
		})
	}
	one, two := w(), w()
	does, waits := f.open(engine.Config{}, one), f.open(engine.Config{Workers: -1}, two)
	run, err := one.Run(t.Context(), does, 1)
	require.NoError(t, err)
	done := two.Of(run.ID).Done(t.Context(), waits)
	<-begun
	select {
	case <-done:
		require.Fail(t, "it runs")
	default:
	}
	close(goOn)
	<-done
}
