package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// mailing is a function of many steps that yields between them. at is called in each step.
func mailing(n int, at func(i int)) *builder.FuncRef[int, int] {
	return builder.MustFunc("mailing", func(ctx context.Context, _ int) (int, error) {
		for i := range n {
			if err := step.Yield(ctx); err != nil {
				return 0, err
			}
			if _, err := step.Do(ctx, fmt.Sprint("mail ", i), func(context.Context) (int, error) { at(i); return i, nil }); err != nil {
				return 0, err
			}
		}
		return n, nil
	}, builder.OnQueue("mail"))
}

// An engine that closes does not wait for the end of a long function that yields: the next engine continues where it was, and neither
// an attempt nor a crash is counted.
func TestALongFunctionYieldsToAClosingEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := make(map[int]int)
		release := make(chan struct{})
		f := mailing(20, func(i int) {
			mu.Lock()
			sent[i]++
			mu.Unlock()
			if i == 5 {
				<-release
			}
		})
		file := sqlite.Memory()
		e, err := engine.Config{Grace: time.Hour}.Open(t.Context(), file, f)
		require.NoError(t, err)
		run, err := f.Run(t.Context(), e, 0)
		require.NoError(t, err)
		synctest.Wait() // it is in step 5
		closed := make(chan error)
		go func() { closed <- e.Close() }()
		synctest.Wait()
		close(release)
		require.NoError(t, <-closed)
		require.Len(t, sent, 6)

		next, err := engine.Config{}.Open(t.Context(), file, f)
		require.NoError(t, err)
		n, err := run.Result(t.Context(), next)
		require.NoError(t, err)
		require.Equal(t, 20, n)
		for i := range 20 {
			require.Equal(t, 1, sent[i], "mail %d", i)
		}
		info, err := next.RunInfo(t.Context(), run.ID)
		require.NoError(t, err)
		require.Equal(t, 1, info.Attempt)
		require.NoError(t, integrity.Check(t.Context(), next))
		require.NoError(t, next.Close())
	})
}

// A function that yields leaves a paused queue, and continues when it is resumed.
func TestALongFunctionYieldsToAPausedQueue(t *testing.T) {
	var e *enginetest.Engine
	calls := 0
	f := mailing(3, func(i int) {
		calls++
		if i == 0 {
			_, err := e.Do(t.Context(), workflow.PauseQueue("mail"))
			require.NoError(t, err)
		}
	})
	e = enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, 0)
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, 1, calls)
	_, err = e.Do(t.Context(), workflow.ResumeQueue("mail"))
	require.NoError(t, err)
	n, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, 3, calls)
}

// A function that yields works in its hours alone, and takes two days.
func TestALongFunctionYieldsAtTheEndOfItsHours(t *testing.T) {
	var days []string
	f := builder.MustFunc("count", func(ctx context.Context, _ int) (int, error) {
		for i := range 4 {
			if err := step.Yield(ctx); err != nil {
				return 0, err
			}
			if _, err := step.Do(ctx, fmt.Sprint("hour ", i), func(context.Context) (int, error) {
				days = append(days, time.Now().In(office.Location()).Format("Mon 15:04"))
				<-time.After(time.Hour)
				return 0, nil
			}); err != nil {
				return 0, err
			}
		}
		return 4, nil
	}, builder.Hours(office))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		run, err := f.Run(t.Context(), e, 0)
		require.NoError(t, err)
		until(t, "2000-01-01 12:00:00")
		says(t, e, run.ID, "waits until Sun 2000-01-02 02:00 Europe/Berlin")
		_, err = run.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, []string{"Sat 02:00", "Sat 03:00", "Sun 02:00", "Sun 03:00"}, days)
	}, f)
}
