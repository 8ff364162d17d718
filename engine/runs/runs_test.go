package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/runs"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"

	"github.com/tasq-dev/tasq/store"
)

// half halves even numbers, and refuses others.
func half() *builder.FuncRef[int, int] {
	return builder.MustFunc("half", func(_ context.Context, n int) (int, error) {
		if n%2 != 0 {
			return 0, fmt.Errorf("%d is odd", n)
		}
		return n / 2, nil
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
}

func evens(n int) (list []int) {
	for i := range n {
		list = append(list, 2*i)
	}
	return list
}

func TestManyRunsAreStartedInFewCommits(t *testing.T) {
	f := half()
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: -1}, f)
	handles, err := runs.Start(t.Context(), e.Engine, f, evens(runs.Batch+10), nil)
	require.NoError(t, err)
	require.Len(t, handles, runs.Batch+10)
	times := make(map[string]int) // the cases of one transaction have one time
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		times[string(c.Input)]++
	}
	require.Len(t, times, runs.Batch+10, "one run for each input")
}

// Cases of a workflow are started like runs of a function, and a repeated call with the same keys starts nothing.
func TestManyCasesAreStartedLikeRuns(t *testing.T) {
	b := builder.New[int]("order")
	pack := builder.Task(b, "pack", builder.Work[int, string]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), pack, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	key := func(n int) []workflow.Option { return []workflow.Option{workflow.Key(fmt.Sprint("order ", n))} }
	first, err := runs.Start(t.Context(), e.Engine, w, evens(10), key)
	require.NoError(t, err)
	all, err := runs.Start(t.Context(), e.Engine, w, evens(20), key)
	require.NoError(t, err)
	require.Equal(t, first, all[:10])
	n := 0
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: "order"}) {
		require.NoError(t, err)
		require.Equal(t, all[n].ID, c.ID, "in the order of the inputs")
		require.Equal(t, fmt.Sprint(2*n), string(c.Input))
		n++
	}
	require.Equal(t, 20, n)
}

// A full queue refuses runs, or has them wait, as it does with single starts.
func TestRunsAreStartedWhileTheirQueueHasRoom(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := builder.MustFunc("second", func(ctx context.Context, n int) (int, error) {
				<-time.After(time.Second)
				return n, nil
			})
			e, err := engine.Config{Workers: 2, MaxPending: map[string]int{"": 3}, WaitWhenFull: waits}.Open(t.Context(), sqlite.Memory(), f)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			handles, err := runs.Start(t.Context(), e, f, evens(12), nil)
			if waits {
				require.NoError(t, err)
				require.Len(t, handles, 12)
			} else {
				require.ErrorIs(t, err, engine.ErrFull)
				require.ErrorContains(t, err, fmt.Sprintf("input %d: ", len(handles)))
				require.LessOrEqual(t, len(handles), 2+3)
				require.GreaterOrEqual(t, len(handles), 3)
			}
			_, err = runs.All(t.Context(), e, handles...)
			require.NoError(t, err)
			require.NoError(t, integrity.Check(t.Context(), e))
		})
	}
}

// Starts that take long, as on a slow machine, are several transactions, none of which takes as long as one may.
func TestRunsThatAreStartedSlowlyAreStartedAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := half()
		e, err := engine.Config{Workers: -1}.Open(t.Context(), sqlite.Memory(), f)
		require.NoError(t, err)
		handles, err := runs.Start(t.Context(), e, f, evens(40), func(int) []workflow.Option {
			<-time.After(engine.DefaultCallbackTimeout / 20)
			return nil
		})
		require.NoError(t, err)
		require.Len(t, handles, 40)
		n := 0
		for _, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 40, n)
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}

func TestABatchIsStartedWholeOrNotAtAll(t *testing.T) {
	f := half()
	e := enginetest.New(t, f)
	key := func(n int) []workflow.Option { return []workflow.Option{workflow.Key(fmt.Sprint("k", n%3))} }
	handles, err := runs.Start(t.Context(), e.Engine, f, []int{0, 2, 4, 6}, key)
	require.ErrorIs(t, err, engine.ErrKeyReused)
	require.ErrorContains(t, err, "input 3")
	require.Empty(t, handles)
	for range store.AllCases(t.Context(), e, store.CaseFilter{States: []state.CaseState{state.CaseStarted}}) {
		t.Fatal("a run of the batch is there")
	}
}

func TestAllFirstAndRace(t *testing.T) {
	f, ctx := half(), t.Context()
	e := enginetest.New(t, f)
	handles, err := runs.Start(ctx, e.Engine, f, []int{4, 8}, nil)
	require.NoError(t, err)
	results, err := runs.All(ctx, e, handles...)
	require.NoError(t, err)
	require.Equal(t, []int{2, 4}, results)

	mixed, err := runs.Start(ctx, e.Engine, f, []int{3, 6, 5}, nil)
	require.NoError(t, err)
	results, err = runs.All(ctx, e, mixed...)
	require.Equal(t, []int{0, 3, 0}, results)
	require.ErrorContains(t, err, "run 0: ")
	require.ErrorContains(t, err, "run 2: ")
	place, out, err := runs.First(ctx, e, mixed...)
	require.NoError(t, err)
	require.Equal(t, []int{1, 3}, []int{place, out})
	place, _, err = runs.First(ctx, e, mixed[0], mixed[2])
	require.Equal(t, -1, place)
	require.ErrorContains(t, err, "is odd")
	place, _, err = runs.Race(ctx, e, mixed[0])
	require.Zero(t, place)
	require.ErrorContains(t, err, "is odd")
	place, _, err = runs.Race[int](ctx, e)
	require.Equal(t, -1, place)
	require.Error(t, err)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	place, _, err = runs.Race(ended, e, mixed...)
	require.Equal(t, -1, place)
	require.ErrorIs(t, err, context.Canceled)
}

func TestMapBoundsWhatIsUnderWay(t *testing.T) {
	const atOnce = 3
	var now, most, read atomic.Int32
	f := builder.MustFunc("double", func(_ context.Context, n int) (int, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		if n == 7 {
			return 0, errors.New("not seven")
		}
		return 2 * n, nil
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := enginetest.New(t, f)
	inputs := func(yield func(int) bool) {
		for n := 0; yield(n); n++ {
			read.Add(1)
		}
	}
	var got []int
	var last runs.Progress
	for out, err := range runs.Map(t.Context(), e, f, inputs, atOnce, func(p runs.Progress) { last = p }) {
		require.Equal(t, len(got) == 7, err != nil)
		if got = append(got, out); len(got) == 20 {
			break
		}
	}
	require.True(t, slices.IsSorted(slices.Delete(got, 7, 8)), "in the order of the inputs: %v", got)
	require.Equal(t, 20, last.Done)
	require.Equal(t, 1, last.Failed)
	require.LessOrEqual(t, last.Started, 20+atOnce)
	require.LessOrEqual(t, most.Load(), int32(atOnce))
	require.LessOrEqual(t, read.Load(), int32(20+atOnce))
	e.Drain()
	for range runs.Map(t.Context(), e, f, nil, atOnce, nil) {
		t.Fatal("there is no input")
	}
}

func BenchmarkStart10000(b *testing.B) {
	f := half()
	e, err := engine.Config{Workers: -1}.Open(b.Context(), sqlite.File(b.TempDir()+"/b.db"), f)
	require.NoError(b, err)
	defer e.Close()
	inputs := evens(10_000)
	for b.Loop() {
		_, err := runs.Start(b.Context(), e, f, inputs, nil)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(len(inputs)*b.N)/b.Elapsed().Seconds(), "runs/s")
}
