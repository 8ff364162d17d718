package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// Random functions call steps in a row and in branches, which take of slots, of slots by key and of a shared rate, fail and are called
// again, while the engine is closed and killed. No limit is exceeded, all functions end, and nothing is left held.
func TestRandomStepsWithLimits(t *testing.T) {
	for seed := range uint64(testsize.Pick(2, 4, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomStepsWithLimits(t, rand.New(rand.NewPCG(seed, 14))) })
		})
	}
}

func randomStepsWithLimits(t *testing.T, r *rand.Rand) {
	slots, keyed, calls := limit.Resource("slots", 3), limit.Resource("keyed", 1), limit.Calls(12, time.Minute).Shared()
	var inSlots, inCalls callLog
	byKey := []*callLog{new(callLog), new(callLog)}
	logs := []*callLog{&inSlots, &inCalls, byKey[0], byKey[1]}
	ask := func(ctx context.Context, name string, n int) error {
		logged, take := &inSlots, step.Takes(slots, 0)
		switch n % 4 {
		case 1:
			logged, take = &inCalls, step.Takes(calls, int64(1+n%2))
		case 2, 3:
			logged, take = byKey[n%2], step.TakesBy(keyed, 1, fmt.Sprint("key ", n%2))
		}
		any := n%8 == 6
		if any {
			take = step.Takes(keyed, 1).AnyOf("key 0", "key 1")
		}
		_, err := step.Do(ctx, name, func(ctx context.Context) (int, error) {
			logged := logged
			if any {
				logged = byKey[limit.KeyOf(ctx, "keyed")[4]-'0']
			}
			logged.begin()
			defer logged.end()
			select {
			case <-time.After(time.Duration(1+n%7) * time.Second):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			if n%5 == 0 {
				return 0, errors.New("once more")
			}
			return n, nil
		}, step.Limits(take), step.Retry(retry.Constant(2, 3*time.Second)))
		if se, ok := errors.AsType[*step.Error](err); ok && se.Step == name {
			return nil
		}
		return err
	}
	f := builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		for i := range 2 {
			if err := ask(ctx, fmt.Sprint("first ", i), n+i); err != nil {
				return 0, err
			}
		}
		if err := step.Sleep(ctx, "nap", time.Duration(n%3)*time.Second); err != nil {
			return 0, err
		}
		_, err := step.Map(ctx, numbers(4), 3, func(ctx context.Context, i, _ int) (int, error) {
			return i, ask(ctx, fmt.Sprint("branch ", i), n*3+i)
		})
		return n, err
	}, builder.Limits(builder.TakenBySteps(slots), builder.TakenBySteps(keyed), builder.TakenBySteps(calls)))
	path := sqlite.File(t.TempDir() + "/limits.db")
	cfg := engine.Config{Logger: slog.New(slog.DiscardHandler), Workers: 1 + r.IntN(4), Steps: 2 + r.IntN(8)}
	var runs []builder.Run[int]
	for life := range 4 {
		e, err := cfg.Open(t.Context(), path, f)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		for range 4 {
			runs = append(runs, startAll(t, e, f, r.IntN(100))...)
		}
		if life == 3 {
			endAll(t, e, runs)
			require.NoError(t, integrity.Check(t.Context(), e))
			require.NoError(t, e.Close())
			break
		}
		<-time.After(time.Duration(r.IntN(40_000)) * time.Millisecond)
		require.LessOrEqual(t, inSlots.highest(), 3)
		require.LessOrEqual(t, byKey[0].highest(), 1)
		require.LessOrEqual(t, byKey[1].highest(), 1)
		if r.IntN(2) == 0 {
			require.NoError(t, e.Close())
		} else {
			require.NoError(t, e.Kill())
			synctest.Wait()
		}
		for _, c := range logs {
			if c != &inCalls { // slots are those of an engine, a shared rate is that of the file
				c.clear()
			}
		}
	}
	require.LessOrEqual(t, inSlots.highest(), 3)
	require.LessOrEqual(t, byKey[0].highest(), 1)
	require.LessOrEqual(t, byKey[1].highest(), 1)
	require.LessOrEqual(t, inCalls.most(time.Minute), 12)
}

// Engines on one PostgreSQL schema count the calls of steps together.
func TestStepsOfAFleetShareSlots(t *testing.T) {
	f := newFleet(t)
	var c callLog
	slots := limit.Resource("slots", 3).Shared()
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", asking(&c, 20*time.Millisecond, step.Takes(slots, 0)), builder.Limits(builder.TakenBySteps(slots)))
	}
	one, two := w(), w()
	a, b := f.open(engine.Config{Workers: 8}, one), f.open(engine.Config{Workers: 8}, two)
	runs := append(startAll(t, a, one, numbers(8)...), startAll(t, b, two, numbers(8)...)...)
	endAll(t, a, runs)
	require.Len(t, c.at, 16)
	require.LessOrEqual(t, c.highest(), 3)
}
