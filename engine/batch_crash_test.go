package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// brittle is a batch whose runs fail at their first attempt now and then.
func brittle() *builder.FuncRef[int, int] {
	return builder.MustBatch("brittle", 4, time.Millisecond, func(ctx context.Context, inputs []int) ([]builder.Outcome[int], error) {
		list := make([]builder.Outcome[int], len(inputs))
		for i, w := range builder.WorksFrom(ctx) {
			if list[i].Value = 2 * inputs[i]; inputs[i]%3 == 0 && w.Attempt == 1 {
				list[i].Err = errors.New("not yet")
			}
		}
		return list, nil
	}, builder.Retry(func(p *retry.Policy) { *p = retry.Constant(2, time.Millisecond) }), builder.Keep(builder.Forever))
}

// A process that does batches is killed at its n-th commit: every run that was started ends, each with the result of its own input.
func TestKillAtEveryCommitOfBatches(t *testing.T) {
	cut{first: 1, last: 60, every: 29, nightly: 1}.each(t, func(t *testing.T, path string, n int, moment string) {
		killed(t, "TestKilledProcessWithBatches", "TASQ_BATCH_KILLED_PROCESS", path, n, moment, "")
		f := brittle()
		e, err := engine.Open(t.Context(), storeOfKilled(path), f)
		require.NoError(t, err)
		awaitDeath(t, path)
		require.NoError(t, integrity.Check(t.Context(), e), "just after opening")
		require.NoError(t, e.Drain(t.Context()))
		for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
			require.NoError(t, err)
			v, err := f.Of(c.ID).Result(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, string(c.Input), fmt.Sprint(v/2))
		}
		require.NoError(t, integrity.Check(t.Context(), e), "at the end")
		require.NoError(t, e.Close())
	})
}

// TestKilledProcessWithBatches is the child process of TestKillAtEveryCommitOfBatches; on its own it does nothing.
func TestKilledProcessWithBatches(t *testing.T) {
	_, o := toBeKilled(t, "TASQ_BATCH_KILLED_PROCESS", 2, smallWindow)
	if o == nil {
		return
	}
	f := brittle()
	e, err := engine.Config{Workers: 2}.Open(t.Context(), o, f)
	require.NoError(t, err)
	for n := 1; ; n++ {
		_, err := f.Run(t.Context(), e, n)
		require.NoError(t, err)
	}
}

// Random histories of runs that are done together: with limits, cancels, pauses, crashes and retries of each run. No call has more than
// its most, no run is done twice at a time, none waits longer than it should, and all end, each with its own result.
func TestRandomBatches(t *testing.T) {
	for seed := range uint64(testsize.Pick(2, 10, 300)) {
		rnd := rand.New(rand.NewPCG(seed, 15))
		most, wait := 1+rnd.IntN(6), time.Duration(rnd.IntN(20))*time.Second
		var e *enginetest.Engine
		var mu sync.Mutex
		var wrong []string
		now := make(map[int]bool)
		run := func(ctx context.Context, inputs []int) ([]builder.Outcome[int], error) {
			mu.Lock()
			defer mu.Unlock()
			list := make([]builder.Outcome[int], len(inputs))
			if len(inputs) > most {
				wrong = append(wrong, fmt.Sprintf("%d are done together, of %d", len(inputs), most))
			}
			for i, w := range builder.WorksFrom(ctx) {
				if now[inputs[i]] {
					wrong = append(wrong, fmt.Sprintf("%d is done twice at a time", inputs[i]))
				}
				now[inputs[i]] = true
				if list[i].Value = 2 * inputs[i]; w.Attempt <= inputs[i]%3 {
					list[i].Err = errors.New("not yet")
				}
			}
			clear(now)
			if inputs[0]%17 == 0 && builder.WorksFrom(ctx)[0].Attempt == 1 {
				return nil, errors.New("none of them")
			}
			return list, nil
		}
		opts := []builder.FuncOption{builder.OnQueue("q"), builder.Retry(func(p *retry.Policy) { *p = retry.Constant(4, 3*time.Second) })}
		if rnd.IntN(2) == 0 {
			opts = append(opts, builder.Limits(
				builder.TakesBy(limit.Resource("one", 1), 1, func(n int) string { return fmt.Sprint(n % 5) }),
				builder.Takes(limit.Calls(20, 10*time.Second), 0)))
		}
		f := builder.MustBatch("f", most, wait, run, opts...)
		e = enginetest.New(t, f)
		runs := make(map[int]builder.Run[int])
		canceled := make(map[int]bool)
		for i := range 60 {
			r, err := f.Run(t.Context(), e, i)
			require.NoError(t, err)
			runs[i] = r
			switch other := rnd.IntN(i + 1); rnd.IntN(12) {
			case 0:
				ok, err := runs[other].Cancel(t.Context(), e, nil)
				require.NoError(t, err)
				canceled[other] = canceled[other] || ok
			case 1:
				e.Crash(f)
			case 2:
				_, err = e.Do(t.Context(), workflow.PauseQueue("q"))
			case 3:
				_, err = e.Do(t.Context(), workflow.ResumeQueue("q"))
			default:
				e.Advance(time.Duration(rnd.IntN(3)) * time.Second)
			}
			require.NoError(t, err)
		}
		_, err := e.Do(t.Context(), workflow.ResumeQueue("q"))
		require.NoError(t, err)
		e.Advance(10 * time.Minute)
		mu.Lock()
		require.Empty(t, wrong, "seed %d", seed)
		mu.Unlock()
		for i, r := range runs {
			s, err := r.Status(t.Context(), e)
			require.NoError(t, err)
			if canceled[i] {
				require.Equal(t, workflow.RunCanceled, s.State, "seed %d", seed)
				continue
			}
			require.Equal(t, workflow.RunCompleted, s.State, "seed %d, run %d: %v", seed, i, s.Failure)
			require.Equal(t, 2*i, s.Value)
		}
	}
}

// Engines of a fleet gather runs each for itself, and each run is done once.
func TestBatchesInAFleet(t *testing.T) {
	fleet := newFleet(t)
	var log batchLog
	f := builder.MustBatch("f", 5, 50*time.Millisecond, log.doubled)
	engines := []*engine.Engine{fleet.open(engine.Config{}, f), fleet.open(engine.Config{}, f)}
	var all sync.WaitGroup
	runs := make([]builder.Run[int], 40)
	for i := range runs {
		all.Go(func() {
			r, err := f.Run(t.Context(), engines[i%2], i)
			if err != nil {
				t.Error(err)
			}
			runs[i] = r
		})
	}
	all.Wait()
	for i, r := range runs {
		v, err := r.Result(t.Context(), engines[0])
		require.NoError(t, err)
		require.Equal(t, 2*i, v)
	}
	var done []int
	for _, call := range log.take() {
		require.LessOrEqual(t, len(call), 5)
		done = append(done, call...)
	}
	slices.Sort(done)
	require.Equal(t, numbers(40), done)
}

// An engine that is closed in the middle of a batch gives its runs back, which is no attempt, and another one does them.
func TestABatchOfAnEngineThatIsClosed(t *testing.T) {
	fleet := newFleet(t)
	begun := make(chan struct{}, 13)
	f := func(run func(context.Context, []int) ([]builder.Outcome[int], error)) *builder.FuncRef[int, int] {
		return builder.MustBatch("f", 5, 50*time.Millisecond, run)
	}
	first := f(func(ctx context.Context, _ []int) ([]builder.Outcome[int], error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	var log batchLog
	second := f(log.doubled)
	a := fleet.open(engine.Config{}, first)
	runs := make([]builder.Run[int], 13)
	for i := range runs {
		var err error
		runs[i], err = first.Run(t.Context(), a, i)
		require.NoError(t, err)
	}
	<-begun
	b := fleet.open(engine.Config{Workers: 2}, second)
	require.NoError(t, a.Close())
	for i, r := range runs {
		v, err := r.Result(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, 2*i, v)
		s, err := r.Status(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, 1, s.Attempt)
	}
	done := slices.Concat(log.take()...)
	slices.Sort(done)
	require.Equal(t, numbers(13), done)
}
