package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A caller whose context ends while the writer does its command shares nothing with the writer. It takes the race detector to see
// that: each callback here lasts until the caller has gone, so the result is made afterwards.
func TestACallerMayGoWhileItsCommandRuns(t *testing.T) {
	bg := t.Context()
	var gone chan struct{}
	wait := func() {
		if gone != nil {
			<-gone
		}
	}
	b := builder.New[any]("slow", builder.On("topic"))
	task := builder.Work[any, any]{
		OnEnabled:              func(context.Context, *activities.Activation) error { wait(); return nil },
		OnWorkItemStateChanged: func(context.Context, *activities.Change) error { wait(); return nil },
	}
	human := builder.Task(b, "t", task)
	b.Path(b.Start(), human, b.End())
	w := b.MustBuild()
	a := builder.MustFunc("a", echo, builder.Keep(builder.Forever))
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{}, w, a)
	run, err := a.Run(bg, e, 1)
	require.NoError(t, err)
	e.Drain()
	id, err := w.Start(bg, e, nil)
	require.NoError(t, err)
	other, err := w.Start(bg, e, nil)
	require.NoError(t, err)
	item := live(t, e, id, "t").ID

	paths := map[string]func(context.Context) error{
		"StartCase": func(ctx context.Context) error { _, err := w.Start(ctx, e, nil); return err },
		"NewItem": func(ctx context.Context) error {
			return enginetest.Do(ctx, e, workflow.AddItem(id, "t", nil))
		},
		"Broadcast": func(ctx context.Context) error { _, err := broadcast(ctx, e, "topic", nil); return err },
		"Execute": func(ctx context.Context) error {
			_, err := e.Do(ctx, workflow.Command{Kind: workflow.KindStart, Workflow: "slow"})
			return err
		},
		"CancelRun": func(ctx context.Context) error {
			_, err := w.Of(other).Cancel(ctx, e, nil)
			return err
		},
		"RestartRun": func(ctx context.Context) error {
			_, err := w.Of(other).Restart(ctx, e)
			return err
		},
		"RunInfo":  func(ctx context.Context) error { _, err := e.RunInfo(ctx, run.ID); return err },
		"WaitRun":  func(ctx context.Context) error { _, err := e.WaitRun(ctx, run.ID); return err },
		"Wait":     func(ctx context.Context) error { _, err := e.Wait(ctx, id); return err },
		"WaitItem": func(ctx context.Context) error { _, err := e.WaitItem(ctx, item); return err },
		"Send":     func(ctx context.Context) error { return enginetest.Do(ctx, e, workflow.Send(id, "event", 1)) },
		"Act":      func(ctx context.Context) error { return enginetest.Do(ctx, e, workflow.Act(item, workitem.Start, nil)) },
		"Cancel":   func(ctx context.Context) error { return enginetest.Do(ctx, e, workflow.Cancel(id, nil)) },
	}
	order := []string{"RunInfo", "WaitRun", "Wait", "WaitItem", "StartCase", "NewItem", "Broadcast", "Execute", "Send", "Act", "CancelRun",
		"RestartRun", "Cancel"}
	require.Len(t, order, len(paths))
	for _, name := range order {
		t.Run(name, func(t *testing.T) {
			for i := range 20 {
				// The context ends at some moment around the one at which the writer begins.
				ctx, cancel := context.WithTimeout(bg, time.Duration(i)*20*time.Microsecond)
				gone = nil
				if i == 19 {
					over := make(chan struct{})
					gone = over
					time.AfterFunc(time.Millisecond, func() { close(over) })
				}
				_ = paths[name](ctx)
				cancel()
				require.NoError(t, e.Update(bg, func(*engine.Tx) error { return nil })) // the writer is done with it
			}
		})
	}
}

// waitedFor is a context that reports the first time that something waits for its end.
type waitedFor struct {
	context.Context
	once   *sync.Once
	waited chan struct{}
}

// Done implements context.Context.
func (c waitedFor) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waited) })
	return c.Context.Done()
}

// A command whose context ends while it is queued does not happen, and its caller knows that at once.
func TestAQueuedCommandIsWithdrawn(t *testing.T) {
	a := builder.MustFunc("a", echo, builder.Keep(builder.Forever))
	e := enginetest.New(t, a)
	canceled, cancel := context.WithCancel(t.Context())
	ctx := waitedFor{canceled, &sync.Once{}, make(chan struct{})}
	gone := make(chan error, 1)
	err := e.Update(t.Context(), func(*engine.Tx) error {
		go func() { _, err := a.Start(ctx, e, 1); gone <- err }()
		<-ctx.waited // it is queued
		cancel()
		err := <-gone // the writer is still here
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "so it does not happen")
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, e.Update(t.Context(), func(*engine.Tx) error { return nil })) // the writer is done with it
	require.Zero(t, cases(t, e))
}

// A command that has begun happens though its context ends, and its caller knows that it may.
func TestACommandThatHasBegunMayHappen(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	b := builder.New[any]("slow")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{OnEnabled: func(ctx context.Context, _ *activities.Activation) error {
		close(begun)
		<-goOn
		return ctx.Err() // it is not the caller's context
	}}), b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := w.Start(ctx, e, nil); gone <- err }()
	<-begun
	cancel()
	err := <-gone
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "may still happen")
	close(goOn)
	require.NoError(t, e.Update(t.Context(), func(*engine.Tx) error { return nil })) // the writer is done with it
	require.Equal(t, 1, cases(t, e))
}

// Update returns only when its function is over, so that the function may use variables of its caller.
func TestUpdateWaitsForItsFunction(t *testing.T) {
	e := enginetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := e.Update(ctx, func(tx *engine.Tx) error {
		cancel()
		<-time.After(5 * time.Millisecond)
		calls++
		return errors.New("its own")
	})
	require.ErrorContains(t, err, "its own")
	require.Equal(t, 1, calls)
}
