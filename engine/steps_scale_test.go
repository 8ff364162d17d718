package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestTenThousandSteps(t *testing.T) {
	const n = 10_000
	var calls tally
	w, _ := function(t, "many", func(ctx context.Context, _ int) (int, error) {
		sum := 0
		for i := range n {
			if i == n/2 {
				if err := step.Sleep(ctx, "half time", time.Minute); err != nil {
					return 0, err
				}
			}
			v, err := step.Do(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) { return calls.add("step") * 0, nil })
			if err != nil {
				return 0, err
			}
			sum += v + 1
		}
		return sum, nil
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	e.Crash()
	e.Advance(time.Minute)
	require.Equal(t, fmt.Sprint("completed: ", n), outcome(t, e, id))
	require.Equal(t, n, calls.of("step"))
}

func TestAResultThatIsTooLargeFailsItsStepAndNothingElse(t *testing.T) {
	w, _ := function(t, "large", func(ctx context.Context, size int) (string, error) {
		_, err := step.Do(ctx, "fetch", func(context.Context) (string, error) { return strings.Repeat("x", size), nil })
		var failed *step.Error
		if errors.As(err, &failed) {
			return failed.Failure.Code, nil
		}
		return "fits", err
	})
	e := enginetest.New(t, w)
	require.Equal(t, `completed: "too-large"`, outcome(t, e, start(t, e, w, 10<<20)))
	require.Equal(t, `completed: "fits"`, outcome(t, e, start(t, e, w, 1<<19)))
	id := start(t, e, w, 0)
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Send(id, "e", strings.Repeat("x", 2<<20))), engine.ErrTooLarge)
}

// A million runs that are due in a century: what they cost in memory, and that the file opens. It takes minutes.
func TestAMillionPendingRuns(t *testing.T) {
	if !testsize.Nightly() {
		t.Skip("takes minutes: set TASQ_NIGHTLY=1")
	}
	const runs, batch = 1_000_000, 1_000
	action := builder.MustFunc("later", func(context.Context, int) (int, error) { return 0, nil })
	path := filepath.Join(t.TempDir(), "million.db")
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, action)
	var last workitem.CaseID
	for range runs / batch {
		require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
			for range batch {
				run, err := action.Run(t.Context(), tx, 1, workflow.After(100*365*24*time.Hour))
				if err != nil {
					return err
				}
				last = run.ID
			}
			return nil
		}))
	}
	e.Crash()
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	t.Logf("%d pending runs: %d MiB live after opening", runs, memory.HeapAlloc>>20)
	done, err := action.Of(last).Cancel(t.Context(), e, nil)
	require.NoError(t, err)
	require.True(t, done)
	n := int64(0)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		counts, err := r.Counts(t.Context())
		for _, c := range counts {
			if c.What == "job" && c.State == "pending" {
				n += c.N
			}
		}
		return err
	}))
	require.EqualValues(t, runs-1, n)
}
