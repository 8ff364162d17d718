package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A run whose job has taken its process down too often says that it is stuck, with its incident and how to release it,
// instead of being waited for without end. Retried, it continues.
func TestAStuckRunSaysSo(t *testing.T) {
	ctx := t.Context()
	begun := make(chan struct{}, 8)
	var mended atomic.Bool
	action := builder.MustFunc("deadly", func(ctx context.Context, n int) (int, error) {
		if mended.Load() {
			return n + 1, nil
		}
		begun <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	e := enginetest.New(t, action)
	run, err := action.Run(ctx, e, 1)
	require.NoError(t, err)
	for range kernel.MaxCrashes + 1 {
		<-begun
		s, err := run.Status(ctx, e)
		require.NoError(t, err)
		require.Equal(t, workflow.RunRunning, s.State)
		e.Crash()
	}
	e.Drain()
	s, err := run.Status(ctx, e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunStuck, s.State)
	require.False(t, s.State.Final())
	require.Equal(t, workitem.CodeCrash, s.Failure.Code)

	item := live(t, e, run.ID, "run")
	_, err = run.Result(ctx, e)
	require.ErrorIs(t, err, builder.ErrStuck)
	failure, ok := errors.AsType[*workitem.Failure](err)
	require.True(t, ok)
	require.Equal(t, workitem.CodeCrash, failure.Code)
	require.ErrorContains(t, err, "is stuck, and waits for a person: crash: its worker died 4 times while it ran; "+
		"retry work item "+item.ID.String()+" (tasq item retry) to run it again, skip it, or give it up")

	answer, err := e.Why(ctx, run.ID)
	require.NoError(t, err)
	require.Len(t, answer.Waits, 1)
	require.Equal(t, why.Incident, answer.Waits[0].Kind)
	require.Contains(t, answer.Waits[0].Text, "item run.1.1 was given up: crash: its worker died 4 times while it ran; "+
		"a person decides: retry it, skip it or give it up")
	require.Equal(t, []string{"tasq item retry " + item.ID.String(), "tasq item skip " + item.ID.String(), "tasq incident give-up " + item.ID.String()},
		answer.Waits[0].Commands)
	for found, err := range why.Stranded(ctx, e, why.Search{Here: e.Here(), Now: e.Now()}) {
		require.NoError(t, err)
		require.Equal(t, "tasq item retry "+item.ID.String(), found.Repair)
	}

	mended.Store(true)
	require.NoError(t, enginetest.Do(ctx, e, workflow.Retry(item.ID, nil)))
	got, err := run.Result(ctx, e)
	require.NoError(t, err)
	require.Equal(t, 2, got)
}

// A long function outlives any number of crashes, as long as it comes further in between: only a part that takes the
// process down again and again is given up.
func TestRecordedStepResetsCrashCount(t *testing.T) {
	ctx := t.Context()
	const parts = 3 * kernel.MaxCrashes
	begun := make(chan int, 1)
	var seen sync.Map
	action := builder.MustFunc("long", func(ctx context.Context, _ int) (int, error) {
		for i := range parts {
			_, err := step.Do(ctx, fmt.Sprint("part ", i), func(ctx context.Context) (int, error) {
				if _, again := seen.LoadOrStore(i, true); again {
					return i, nil
				}
				begun <- i
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if err != nil {
				return 0, err
			}
		}
		return parts, nil
	})
	e := enginetest.New(t, action)
	run, err := action.Run(ctx, e, 1)
	require.NoError(t, err)
	for i := range parts {
		require.Equal(t, i, <-begun)
		e.Crash()
	}
	got, err := run.Result(ctx, e)
	require.NoError(t, err)
	require.Equal(t, parts, got)
}

// A caller that waits already is notified. An item that a person has started, and works on, is not stuck.
func TestWaitReturnsWhenRunGetsStuck(t *testing.T) {
	ctx := t.Context()
	b := builder.New[int]("stubborn")
	release := make(chan struct{})
	work := builder.Task(b, "work", builder.Work[int, int]{
		Input: builder.CaseInput(b),
		Run:   func(context.Context, int) (int, error) { <-release; return 1, nil },
		OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
			if c.To.Final() {
				return errors.New("neither")
			}
			return nil
		},
	})
	b.Path(b.Start(), work, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(ctx, e, 1)
	require.NoError(t, err)
	told := make(chan workflow.RunInfo, 1)
	go func() {
		info, _ := e.WaitRun(ctx, id)
		told <- info
	}()
	close(release)
	info := <-told
	require.Equal(t, workflow.RunStuck, info.State)
	require.Equal(t, live(t, e, id, "work").ID, info.Stuck)
	require.Contains(t, info.Failure.Message, "neither")
	e.Drain()
}

func TestAnItemThatAPersonHasStartedIsNotStuck(t *testing.T) {
	ctx := t.Context()
	action := builder.MustFunc("slow", func(context.Context, int) (int, error) { return 1, nil })
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: -1}, action)
	run, err := action.Run(ctx, e, 1)
	require.NoError(t, err)
	item := live(t, e, run.ID, "run")
	require.NoError(t, enginetest.Do(ctx, e, workflow.Act(item.ID, workitem.Start, nil)))
	s, err := run.Status(ctx, e)
	require.NoError(t, err)
	require.NotEqual(t, workflow.RunStuck, s.State)
	got := make(chan int, 1)
	go func() {
		n, _ := run.Result(ctx, e)
		got <- n
	}()
	require.NoError(t, enginetest.Do(ctx, e, workflow.Act(item.ID, workitem.Complete, json.RawMessage("3"))))
	require.Equal(t, 3, <-got)
}
