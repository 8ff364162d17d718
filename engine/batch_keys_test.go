package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
)

// A batch holds runs of one key; those of several keys gather beside each other, also over a crash.
func TestABatchHoldsRunsOfOneKey(t *testing.T) {
	var log batchLog
	f := builder.MustBatch("f", 2, 10*time.Second, log.doubled, builder.BatchBy(func(n int) string {
		if n == 13 {
			panic("no key")
		}
		return fmt.Sprint(n % 10)
	}))
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, 11, 12)
	says(t, e, runs[0].ID, "item run.1.1 waits for a batch of 2 with 1 so far")
	require.Empty(t, log.take(), "two are there, of two keys")
	runs = append(runs, runAll(t, e, f, 21)...)
	require.Equal(t, [][]int{{11, 21}}, log.take())
	runs = append(runs, runAll(t, e, f, 13)...)
	require.Equal(t, [][]int{{13}}, log.take(), "without a key it is done alone")
	runs = append(runs, runAll(t, e, f, 31, 41, 51)...)
	require.Equal(t, [][]int{{31, 41}}, log.take())
	e.Advance(5 * time.Second)
	runs = append(runs, runAll(t, e, f, 14)...)
	e.Crash()
	e.Advance(5*time.Second - time.Millisecond)
	require.Empty(t, log.take())
	e.Advance(time.Millisecond)
	require.ElementsMatch(t, [][]int{{12}, {51}}, log.take(), "ten seconds after they were due")
	e.Advance(5 * time.Second)
	require.Equal(t, [][]int{{14}}, log.take())
	for _, r := range runs {
		_, err := r.Result(t.Context(), e)
		require.NoError(t, err)
	}
}

// What a batch does not count cannot fill it: the run of a suspended case waits outside of the line, and joins it when its case continues.
func TestABatchIsNotFullWithASuspendedCase(t *testing.T) {
	var log batchLog
	f := builder.MustBatch("f", 2, time.Hour, log.doubled)
	for _, crash := range []bool{false, true} {
		e := enginetest.New(t, f)
		runs := runAll(t, e, f, 1)
		_, err := e.Do(t.Context(), workflow.Suspend(runs[0].ID))
		require.NoError(t, err)
		if crash {
			e.Crash()
		}
		runs = append(runs, runAll(t, e, f, 2)...)
		require.Empty(t, log.take(), "it would be a batch of one")
		says(t, e, runs[1].ID, "item run.1.1 waits for a batch of 2 with 1 so far")
		runs = append(runs, runAll(t, e, f, 3)...)
		require.Equal(t, [][]int{{2, 3}}, log.take(), "it does not wait for the suspended one")
		_, err = e.Do(t.Context(), workflow.Resume(runs[0].ID, nil))
		require.NoError(t, err)
		e.Drain()
		require.Empty(t, log.take())
		runs = append(runs, runAll(t, e, f, 4)...)
		require.Equal(t, [][]int{{1, 4}}, log.take())
		for i, r := range runs {
			v, err := r.Result(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, 2*(i+1), v)
		}
	}
}

// A step belongs to one run, and a batch is a call for several: a step within it is refused, and says so.
func TestABatchHasNoSteps(t *testing.T) {
	f := builder.MustBatch("f", 1, 0, func(ctx context.Context, inputs []int) ([]builder.Outcome[int], error) {
		_, err := step.Do(ctx, "s", func(context.Context) (int, error) { return 1, nil })
		return nil, err
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := enginetest.New(t, f)
	runs := runAll(t, e, f, 1)
	_, err := runs[0].Result(t.Context(), e)
	require.ErrorContains(t, err, "batch")
}
