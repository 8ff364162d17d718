package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// A run that continues learns what has ended before its function came to the first step: otherwise it would wait for it
// in memory without limit.
func TestAWaitThatEndsBeforeTheFunctionLooksAtItsSteps(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var runs tally
	w, _ := function(t, "two_events", func(ctx context.Context, _ int) (int, error) {
		if runs.add("run") == 2 {
			close(entered)
			<-release
		}
		a := step.Go(ctx, func(ctx context.Context) (int, error) { return step.Await[int](ctx, "a") })
		b := step.Go(ctx, func(ctx context.Context) (int, error) { return step.Await[int](ctx, "b") })
		if err := step.All(ctx, a, b); err != nil {
			return 0, err
		}
		x, _ := a.Wait(ctx)
		y, err := b.Wait(ctx)
		return x + y, err
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	var done sync.WaitGroup
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "a", 1)))
	done.Go(e.Drain)
	<-entered
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "b", 2)))
	close(release)
	done.Wait()
	require.Equal(t, "completed: 3", outcome(t, e, id))
	e.Check()
}

// Values have no commit of their own: those that nothing was recorded after come with the end of the job, failed or
// not.
func TestTheLastValuesOfAFunctionAreRecordedWithItsEnd(t *testing.T) {
	for _, failed := range []bool{false, true} {
		w, _ := function(t, "clock", func(ctx context.Context, _ int) (int, error) {
			if _, err := step.Now(ctx, "now"); err != nil {
				return 0, err
			}
			if err := step.Sleep(ctx, "nothing", 0); err != nil || failed {
				return 0, errors.Join(err, errors.New("not today"))
			}
			return 7, nil
		})
		e := enginetest.New(t, w)
		id := start(t, e, w, 0)
		var names []string
		for _, s := range stepsOf(t, e, store.StepFilter{Case: id}) {
			names = append(names, fmt.Sprintf("%s %s", s.Name, s.State))
		}
		require.Equal(t, []string{"now done", "nothing done"}, names)
		e.Check()
	}
}
