package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// jumping is the clock of a machine that is set, or sleeps: its timers count the time that passes, and know nothing of it.
type jumping struct {
	retry.Clock
	ahead atomic.Int64
}

// Now implements retry.Clock.
func (c *jumping) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

// An idle engine sees within two seconds that its clock was set ahead, whatever then is due: a sleeping function, a case that begins
// later, a timer, the retention of a case.
func TestAClockThatIsSetAheadIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := &jumping{Clock: retry.SystemClock}
		a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
			return n, step.Sleep(ctx, "nap", time.Hour)
		}, builder.Keep(builder.Forever))
		gone := builder.MustFunc("gone", echo, builder.Keep(time.Hour))
		b := builder.New[any]("timed")
		b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Timeout: time.Hour}), b.End())
		timed := b.MustBuild()
		e, err := engine.Config{Clock: c, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, sqlite.Memory(), a, gone, timed)
		require.NoError(t, err)
		run, err := a.Run(ctx, e, 1)
		require.NoError(t, err)
		id, err := timed.Start(ctx, e, nil)
		require.NoError(t, err)
		kept, err := gone.Run(ctx, e, 1)
		require.NoError(t, err)
		require.NoError(t, e.Drain(ctx))

		before := time.Now()
		c.ahead.Store(int64(2 * time.Hour))
		_, err = run.Result(ctx, e)
		require.NoError(t, err)
		_, err = e.Wait(ctx, id)
		require.NoError(t, err)
		require.Less(t, time.Since(before), 2*time.Second)
		<-time.After(2 * time.Second)
		_, err = e.Case(ctx, kept.ID)
		require.ErrorIs(t, err, engine.ErrNotFound)
		require.NoError(t, integrity.Check(ctx, e))
		require.NoError(t, e.Close())
	})
}

// What was made while the clock was behind is due at the right time once the clock is put right; what waits while it is set back
// waits for the time that it was given.
func TestAClockThatIsSetBackIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := &jumping{Clock: retry.SystemClock}
		a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
			return n, step.Sleep(ctx, "nap", time.Hour)
		}, builder.Keep(builder.Forever))
		e, err := engine.Config{Clock: c, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, sqlite.Memory(), a)
		require.NoError(t, err)
		first, err := a.Run(ctx, e, 1)
		require.NoError(t, err)
		require.NoError(t, e.Drain(ctx))
		c.ahead.Store(int64(-5 * time.Hour))
		second, err := a.Run(ctx, e, 2)
		require.NoError(t, err)
		before := time.Now()
		_, err = second.Result(ctx, e)
		require.NoError(t, err)
		require.InDelta(t, time.Hour.Seconds(), time.Since(before).Seconds(), 2)
		s, err := first.Status(ctx, e)
		require.NoError(t, err)
		require.False(t, s.State.Final(), "by this clock its hour is not over")
		c.ahead.Store(0)
		before = time.Now()
		_, err = first.Result(ctx, e)
		require.NoError(t, err)
		require.Less(t, time.Since(before), 2*time.Second)
		require.NoError(t, integrity.Check(ctx, e))
		require.NoError(t, e.Close())
	})
}

// While things wait and nothing is due, the store is not asked for anything.
func TestWaitingAsksTheStoreNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := &outage{Opener: sqlite.Memory()}
		a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
			return n, step.Sleep(ctx, "nap", time.Hour)
		})
		e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(ctx, f, a)
		require.NoError(t, err)
		_, err = a.Run(ctx, e, 1)
		require.NoError(t, err)
		require.NoError(t, e.Drain(ctx))
		<-time.After(time.Second) // housekeeping
		asked := f.asked.Load()
		<-time.After(30 * time.Minute)
		require.Equal(t, asked, f.asked.Load())
		require.NoError(t, e.Close())
	})
}

// A function whose time has come, and is ahead again when the writer takes it up, since the clock was set back meanwhile, continues at
// its time.
func TestAClockThatIsSetBackWhileTheWriterIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := &jumping{Clock: retry.SystemClock}
		a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
			return n, step.Sleep(ctx, "nap", time.Hour)
		}, builder.Keep(builder.Forever))
		e, err := engine.Config{Clock: c, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, &outage{Opener: sqlite.Memory()}, a) // which hides the inbox
		require.NoError(t, err)
		run, err := a.Run(ctx, e, 1)
		require.NoError(t, err)
		require.NoError(t, e.Drain(ctx))
		require.NoError(t, e.Update(ctx, func(*engine.Tx) error {
			c.ahead.Store(int64(2 * time.Hour))
			<-time.After(2 * time.Second) // what is due is with the writer now
			c.ahead.Store(0)
			return nil
		}))
		before, late := time.Now(), time.AfterFunc(2*time.Hour, func() { panic("the function does not go on") })
		_, err = run.Result(ctx, e)
		require.NoError(t, err)
		require.InDelta(t, time.Hour.Seconds(), time.Since(before).Seconds(), 10)
		late.Stop()
		require.NoError(t, integrity.Check(ctx, e))
		require.NoError(t, e.Close())
	})
}

// What is due is tried at once when the store takes a command again, however long it was down.
func TestDueWorkIsRetriedAtOnceWhenStoreRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := &outage{Opener: sqlite.Memory()}
		a := builder.MustFunc("a", echo, builder.Keep(builder.Forever))
		e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(ctx, f, a)
		require.NoError(t, err)
		run, err := a.Run(ctx, e, 1, workflow.After(time.Minute))
		require.NoError(t, err)
		f.down.Store(true)
		<-time.After(10*time.Minute + time.Second)
		require.Len(t, e.Overdue(), 1)
		f.down.Store(false)
		before := time.Now()
		require.NoError(t, e.Update(ctx, func(*engine.Tx) error { return nil }))
		_, err = run.Result(ctx, e)
		require.NoError(t, err)
		require.Less(t, time.Since(before), 50*time.Millisecond)
		require.NoError(t, e.Close())
	})
}
