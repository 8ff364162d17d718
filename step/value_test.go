package step_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
)

func TestNowIsTheSameOnEveryReplay(t *testing.T) {
	job := steptest.New()
	seen := map[string]map[time.Time]bool{"first": {}, "second": {}}
	now := func(ctx context.Context, name string) error {
		at, err := step.Now(ctx, name)
		seen[name][at] = true
		return err
	}
	fn := func(ctx context.Context) error {
		if err := now(ctx, "first"); err != nil {
			return err
		}
		if err := nap(ctx); err != nil {
			return err
		}
		if err := now(ctx, "second"); err != nil {
			return err
		}
		return step.Sleep(ctx, "again", time.Hour)
	}
	begin := job.Now()
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Equal(t, 1, job.Writes(), "no commit of its own")
	job.Advance(time.Hour)
	job.Advance(-30 * time.Minute) // the machine's clock was set back
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Equal(t, map[string]map[time.Time]bool{"first": {begin: true}, "second": {begin.Add(time.Hour): true}}, seen,
		"and it is never before the end of a step")
}

func TestVersion(t *testing.T) {
	old := func(ctx context.Context) error {
		if err := (calls{}).fails(ctx, "a", nil); err != nil {
			return err
		}
		return nap(ctx)
	}
	newer := func(count calls, latest int) func(context.Context) error {
		return func(ctx context.Context) error {
			v, err := step.Version(ctx, "b before a", latest)
			if err != nil {
				return err
			}
			count[fmt.Sprint("version ", v)]++
			if v >= 1 {
				if err := count.fails(ctx, "b", nil); err != nil {
					return err
				}
			}
			return old(ctx)
		}
	}
	t.Run("a new job gets the latest, and keeps it", func(t *testing.T) {
		job, count := steptest.New(), calls{}
		require.True(t, job.Run(t.Context(), newer(count, 1)).Suspended)
		job.Advance(time.Hour)
		require.NoError(t, job.Run(t.Context(), newer(count, 2)).Err)
		require.Equal(t, calls{"version 1": 2, "b": 1}, count)
	})
	t.Run("an old job gets 0", func(t *testing.T) {
		job, count := steptest.New(), calls{}
		require.True(t, job.Run(t.Context(), old).Suspended)
		require.True(t, job.Run(t.Context(), newer(count, 1)).Suspended)
		job.Advance(time.Hour)
		require.NoError(t, job.Run(t.Context(), newer(count, 1)).Err)
		require.Equal(t, calls{"version 0": 2}, count)
	})
	t.Run("an old job that has still to come there gets the latest", func(t *testing.T) {
		count := calls{}
		out := changed(t, nap, func(ctx context.Context) error {
			if err := nap(ctx); err != nil {
				return err
			}
			v, err := step.Version(ctx, "v", 3)
			require.Equal(t, 3, v)
			return err
		})
		require.NoError(t, out.Err)
		require.Empty(t, count)
	})
	t.Run("code that is older than its job is told", func(t *testing.T) {
		out := changed(t, newer(calls{}, 2), newer(calls{}, 1))
		require.ErrorIs(t, out.Err, step.ErrChanged)
		require.ErrorContains(t, out.Err, `step "b before a": version 2 was recorded, and the code at value_test.go:`)
		require.ErrorContains(t, out.Err, `knows only 1`)
	})
}

func TestRandAndKeyBelongToTheWork(t *testing.T) {
	type drawn struct {
		numbers [3]uint64
		key     string
	}
	draw := func(job *steptest.Job, name string) (d drawn) {
		job.Run(t.Context(), func(ctx context.Context) error {
			r := step.Rand(ctx, name)
			d = drawn{[3]uint64{r.Uint64(), r.Uint64(), r.Uint64()}, step.Key(ctx, name)}
			return nap(ctx)
		})
		return d
	}
	job := steptest.New()
	d := draw(job, "a")
	require.Equal(t, d, draw(job, "a"), "on every replay")
	require.NotEqual(t, d.numbers, draw(job, "b").numbers)
	require.NotEqual(t, d.key, draw(job, "b").key)
	require.Len(t, d.key, 32)
	require.NotEqual(t, d.numbers[0], d.numbers[1])
	job.Advance(time.Hour)
	job.Run(t.Context(), func(ctx context.Context) error { _ = nap(ctx); return errFlaky })
	job.Retry()
	require.Equal(t, d, draw(job, "a"), "in the next attempt")
	require.Equal(t, d, draw(job.Restart(), "a"), "in the job that inherits its steps")
	another := steptest.New()
	another.Info.Key = "another"
	require.NotEqual(t, d.numbers, draw(another, "a").numbers)
	require.NotEqual(t, d.key, draw(another, "a").key)
}

func TestAKeyCanBeUsedInAStep(t *testing.T) {
	job := steptest.New()
	keys := map[string]bool{}
	out := job.Drive(t.Context(), func(ctx context.Context) error {
		keys[step.Key(ctx, "charge")] = true
		return second(step.Do(ctx, "charge", func(ctx context.Context) (int, error) {
			keys[step.Key(ctx, "charge")] = true
			return 0, errFlaky
		}, step.Retry(retry.Constant(3, time.Second))))
	})
	require.Error(t, out.Err)
	require.Len(t, keys, 1)
}

func TestALineIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	job := steptest.New()
	job.Info.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	fn := func(ctx context.Context) error {
		l := step.Log(ctx).With("by", "main")
		l.Info("begins")
		b := step.Go(ctx, func(ctx context.Context) (int, error) {
			step.Log(ctx).WithGroup("g").Info("branch", "n", 1)
			err := step.Sleep(ctx, "one", time.Hour)
			if err == nil {
				step.Log(ctx).Info("branch ends")
			}
			return 1, err
		})
		_, err := step.Do(ctx, "work", func(ctx context.Context) (int, error) {
			step.Log(ctx).Info("works")
			return 1, nil
		})
		if err != nil {
			return err
		}
		l.Info("has worked")
		if _, err := b.Wait(ctx); err != nil {
			return err
		}
		l.Info("has waited")
		if err := step.Sleep(ctx, "two", time.Hour); err != nil {
			return err
		}
		l.Debug("not of interest")
		l.Info("ends")
		return nil
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.ElementsMatch(t, []string{
		"msg=begins by=main", "msg=branch g.n=1", "msg=works", `msg="has worked" by=main`, `msg="branch ends"`,
		`msg="has waited" by=main`, "msg=ends by=main",
	}, lines)
	require.Equal(t, "msg=ends by=main", lines[6])
}

// A goroutine of the user's own may still log while the run takes what is held back. The race detector sees it.
func TestAGoroutineMayLogAsTheRunEnds(t *testing.T) {
	job := steptest.New()
	job.Info.Log = slog.New(slog.NewTextHandler(io.Discard, nil)) // a handler that discards would not be asked
	var logs sync.WaitGroup
	fn := func(ctx context.Context) error {
		if err := step.Sleep(ctx, "night", time.Hour); err != nil {
			return err
		}
		begun := make(chan struct{})
		logs.Go(func() {
			close(begun)
			for range 1000 {
				step.Log(ctx).Info("still here")
			}
		})
		<-begun
		return nil
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	logs.Wait()
}
