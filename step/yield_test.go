package step_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
)

// A function that is asked for its worker continues later where it was; values without a commit of their own are kept, too.
func TestAYieldKeepsWhatWasDone(t *testing.T) {
	job, count := steptest.New(), calls{}
	wanted := false
	job.Info.Yield = func() bool { return wanted }
	var first []time.Time
	fn := func(ctx context.Context) error {
		at, err := step.Now(ctx, "begin")
		if err != nil {
			return err
		}
		first = append(first, at)
		for i := range 3 {
			if _, err := count.do(ctx, fmt.Sprint("step ", i), i); err != nil {
				return err
			}
			wanted = i == 0 && len(first) == 1
			if err := step.Yield(ctx); err != nil {
				return fmt.Errorf("after step %d: %w", i, err)
			}
		}
		return nil
	}
	out := job.Run(t.Context(), fn)
	require.True(t, out.Yielded)
	require.NoError(t, out.Err)
	require.True(t, job.Ready(), "it is due at once")
	require.Equal(t, calls{"step 0": 1}, count)
	job.Advance(time.Minute)
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.True(t, job.Settled())
	require.Equal(t, calls{"step 0": 1, "step 1": 1, "step 2": 1}, count)
	require.Equal(t, first[0], first[1])
}

// What a branch waits for when the worker is given back continues to count from when it began.
func TestAYieldKeepsWhatBranchesWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := steptest.New()
		wanted := true
		job.Info.Yield = func() bool { return wanted }
		fn := func(ctx context.Context) error {
			nap := step.Go(ctx, func(ctx context.Context) (int, error) { return 1, step.Sleep(ctx, "nap", 10) })
			synctest.Wait() // until the branch sleeps
			if err := step.Yield(ctx); err != nil {
				return err
			}
			_, err := nap.Wait(ctx)
			return err
		}
		begin := job.Now()
		require.True(t, job.Run(t.Context(), fn).Yielded)
		wanted = false
		job.Advance(4)
		require.True(t, job.Run(t.Context(), fn).Suspended)
		require.Equal(t, begin.Add(10), job.Step("nap").Due)
		require.NoError(t, job.Drive(t.Context(), fn).Err)
	})
}

// A function cannot hide that it has given its worker back, and one that does not want to is not asked.
func TestYieldIsMisused(t *testing.T) {
	err := step.Yield(t.Context())
	require.ErrorIs(t, err, step.ErrNoJob)
	require.EqualError(t, err, "step.Yield: not in a job: use the context that the job's function was given; the function of a batch has no steps")

	job, log := steptest.New(), &bytes.Buffer{}
	job.Info.Log, job.Info.Yield = slog.New(slog.NewTextHandler(log, nil)), func() bool { return true }
	later := 0
	out := job.Run(t.Context(), func(ctx context.Context) error {
		_ = step.Yield(ctx)
		_, err := step.Do(ctx, "later", func(context.Context) (int, error) { later++; return 0, nil })
		require.ErrorIs(t, err, step.ErrYielded)
		return errors.New("all is lost")
	})
	require.True(t, out.Yielded)
	require.Zero(t, later)
	require.Contains(t, log.String(), "went on after ErrYielded")

	job = steptest.New()
	job.Info.Yield = func() bool { return true }
	out = job.Run(t.Context(), func(ctx context.Context) error {
		_, err := step.Do(ctx, "outer", func(ctx context.Context) (int, error) { return 0, step.Yield(ctx) })
		return err
	})
	require.ErrorIs(t, out.Err, step.ErrUsage)

	out = steptest.New().Run(t.Context(), func(context.Context) error { return step.ErrYielded })
	require.ErrorIs(t, out.Err, step.ErrUsage)
	require.NoError(t, steptest.New().Run(t.Context(), step.Yield).Err, "nobody wants the worker")
}
