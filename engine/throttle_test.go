package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Two starts of a key are let through in any minute. What became of them does not matter, and a start that is refused does not count.
func TestThrottle(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	began := e.Now()
	start := func(key, input string, opts ...workflow.Option) (workflow.Result, error) {
		opts = append(opts, workflow.BusinessKey(key), workflow.Throttle(2, time.Minute))
		result, err := e.Do(t.Context(), workflow.Start("nap", []byte(input), opts...))
		e.Drain()
		return result, err
	}
	_, err := start("ada", `"fail"`)
	require.NoError(t, err)
	e.Advance(20 * time.Second)
	second, err := start("ada", `"a"`)
	require.NoError(t, err)
	e.Advance(20 * time.Second)
	for range 2 {
		_, err = start("ada", `"a"`)
		var throttled *workflow.ThrottledError
		require.ErrorAs(t, err, &throttled)
		require.ErrorIs(t, err, workflow.ErrThrottled)
		require.Equal(t, "throttled", engine.Code(err))
		require.Equal(t, workflow.ThrottledError{Workflow: "nap", Key: "ada", Throttle: 2, Window: time.Minute, Case: second.Case,
			Again: began.Add(time.Minute), Wait: 20 * time.Second}, *throttled)
		require.ErrorContains(t, err, "start it in 20s, at 2030-01-01T00:01:00Z, or later")
	}
	found, err := start("ada", `"a"`, workflow.IfTaken(workflow.Return))
	require.NoError(t, err)
	require.Equal(t, workflow.Result{Case: second.Case, Found: true}, found)
	_, err = start("eve", `"a"`)
	require.NoError(t, err, "another key has a window of its own")

	e.Advance(20*time.Second - time.Microsecond)
	e.Crash(f)
	_, err = start("ada", `"a"`)
	require.ErrorIs(t, err, workflow.ErrThrottled)
	e.Advance(time.Microsecond)
	third, err := start("ada", `"a"`, workflow.IfTaken(workflow.Return))
	require.NoError(t, err, "the first was a minute ago")
	require.False(t, third.Found)
	_, err = start("ada", `"a"`)
	require.ErrorIs(t, err, workflow.ErrThrottled, "the second and the third")
}

// Starts without Throttle count, are refused by none, and starts of one transaction count for each other.
func TestThrottleBesideOtherStarts(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	plain := workflow.Start("nap", []byte(`"a"`), workflow.BusinessKey("ada"))
	throttled := workflow.With(plain, workflow.Throttle(2, time.Minute))
	_, err := e.Do(t.Context(), plain)
	require.NoError(t, err)
	err = e.Update(t.Context(), func(tx *engine.Tx) error {
		if _, err := tx.Do(t.Context(), throttled); err != nil {
			return err
		}
		_, err := tx.Do(t.Context(), throttled)
		require.ErrorIs(t, err, workflow.ErrThrottled)
		return nil
	})
	require.NoError(t, err)
	_, err = e.Do(t.Context(), plain)
	require.NoError(t, err)
	require.Len(t, everyCase(t, e), 3)
}

// A case that its workflow would remove at once counts for its window, and is removed then.
func TestAThrottledCaseIsKeptForItsWindow(t *testing.T) {
	f := builder.MustFunc("f", func(context.Context, string) (string, error) { return "", nil }, builder.Keep(0))
	e := enginetest.New(t, f)
	start := func() error {
		_, err := f.Run(t.Context(), e, "a", workflow.BusinessKey("ada"), workflow.Throttle(1, time.Hour))
		e.Drain()
		return err
	}
	require.NoError(t, start())
	e.Advance(time.Hour - time.Second)
	require.ErrorIs(t, start(), workflow.ErrThrottled)
	e.Advance(time.Second)
	require.Empty(t, everyCase(t, e))
	require.NoError(t, start())
}

func TestThrottleThatCannotBe(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	key, minute := workflow.BusinessKey("a"), workflow.Throttle(1, time.Minute)
	for want, opts := range map[string][]workflow.Option{
		"needs a business key":             {minute},
		"lets 0 starts through":            {key, workflow.Throttle(0, 0)},
		"lets 1001 starts through":         {key, workflow.Throttle(1001, time.Minute)},
		"the window of Throttle is 0s":     {key, workflow.Throttle(1, 0)},
		"the window of Throttle is -1s":    {key, workflow.Throttle(1, -time.Second)},
		`IfTaken is "queue"`:               {key, minute, workflow.IfTaken(workflow.Queued)},
		`IfTaken is "debounce"`:            {key, minute, workflow.Debounce(time.Second, 0)},
		"has OncePer and Throttle":         {key, minute, workflow.OncePer(workflow.Day, "")},
		"is throttled, and the case is to": {key, minute, workflow.After(time.Second)},
		"OncePer has no period":            {key, workflow.OncePer("", "")},
	} {
		_, err := f.Run(t.Context(), e, "a", opts...)
		require.ErrorIs(t, err, workflow.ErrBadCommand, want)
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, everyCase(t, e))
	_, err := e.Do(t.Context(), workflow.Command{Kind: workflow.KindStart, Workflow: "nap", BusinessKey: "a", Window: time.Minute})
	require.ErrorContains(t, err, "lets 0 starts through")
	_, err = e.Do(t.Context(), workflow.With(workflow.Command{Kind: workflow.KindCancel}, minute))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
}

// Random starts of some keys, with crashes and cases that are removed: each is let through if a model of the window has room for it.
func TestRandomThrottles(t *testing.T) {
	for seed := range uint64(testsize.Pick(4, 10, 400)) {
		rnd := rand.New(rand.NewPCG(seed, 41))
		n, window := 1+rnd.IntN(4), time.Duration(1+rnd.IntN(60))*time.Second
		f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) {
			if s == "fail" {
				return "", errors.New("no")
			}
			return s, nil
		}, builder.Keep(time.Duration(rnd.IntN(20))*time.Second))
		e := enginetest.New(t, f)
		starts := make(map[string][]time.Time)
		for range 80 {
			key := fmt.Sprint("k", rnd.IntN(3))
			in := 0
			for _, at := range starts[key] {
				if e.Now().Sub(at) < window {
					in++
				}
			}
			_, err := f.Run(t.Context(), e, []string{"fail", "a"}[rnd.IntN(2)], workflow.BusinessKey(key), workflow.Throttle(n, window))
			if in < n {
				require.NoError(t, err, "seed %d", seed)
				starts[key] = append(starts[key], e.Now())
			} else {
				require.ErrorIs(t, err, workflow.ErrThrottled, "seed %d", seed)
			}
			if rnd.IntN(10) == 0 {
				e.Crash(f)
			}
			e.Advance(time.Duration(rnd.IntN(8)) * time.Second)
		}
	}
}

// keyReads calls a function each time an engine has read which cases a business key has.
type keyReads struct {
	store.Tx
	read func()
}

// KeyStarts implements [store.Tx].
func (t keyReads) KeyStarts(ctx context.Context, workflow, key string, after time.Time) ([]store.KeyStart, error) {
	defer t.read()
	return t.Tx.KeyStarts(ctx, workflow, key, after)
}

// KeyHolders implements [store.Tx].
func (t keyReads) KeyHolders(ctx context.Context, workflow, key string) ([]workitem.CaseID, error) {
	defer t.read()
	return t.Tx.KeyHolders(ctx, workflow, key)
}

// Another engine removes the case that a start would return, after the start has found it: then the start begins one.
func TestTheCaseThatAStartReturnsIsRemoved(t *testing.T) {
	f := newFleet(t)
	quick := func() *builder.FuncRef[string, string] {
		return builder.MustFunc("quick", func(_ context.Context, s string) (string, error) { return s, nil })
	}
	other := f.open(engine.Config{}, quick())
	var remove workitem.CaseID
	cfg := engine.Config{Logger: slog.New(slog.DiscardHandler)}
	e, err := cfg.Open(t.Context(), &storehook.Opener{Opener: postgres.Open(f.dsn), Tx: func(tx store.Tx) store.Tx {
		return keyReads{tx, func() {
			if id := remove; !id.IsZero() {
				remove = workitem.CaseID{}
				_, err := other.Do(t.Context(), workflow.Remove(id))
				require.NoError(t, err)
			}
		}}
	}}, quick())
	require.NoError(t, err)
	defer e.Close()
	for _, opt := range []workflow.Option{workflow.Throttle(1, time.Hour), workflow.IfTaken(workflow.Return)} {
		start := workflow.Start("quick", []byte(`"a"`), workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Return), opt)
		first, err := other.Do(t.Context(), start)
		require.NoError(t, err)
		require.Contains(t, ends(t, other, first.Case), "completed")
		remove = first.Case
		second, err := e.Do(t.Context(), start)
		require.NoError(t, err)
		require.False(t, second.Found)
		require.Contains(t, ends(t, e, second.Case), "completed")
		_, err = e.Do(t.Context(), workflow.Remove(second.Case))
		require.NoError(t, err)
	}
}

// Starts on several engines at once: as many are let through as may be, and the others are refused or find one of them.
func TestThrottleInAFleet(t *testing.T) {
	f := newFleet(t)
	engines := []*engine.Engine{f.open(engine.Config{}, napping()), f.open(engine.Config{}, napping())}
	const starts = 20
	for _, policy := range []workflow.Taken{workflow.Refuse, workflow.Return} {
		var all sync.WaitGroup
		results, errs := make([]workflow.Result, starts), make([]error, starts)
		for i := range starts {
			all.Go(func() {
				results[i], errs[i] = engines[i%2].Do(t.Context(), workflow.Start("nap", []byte(`"x"`), workflow.BusinessKey(string(policy)),
					workflow.IfTaken(policy), workflow.Throttle(3, time.Hour)))
			})
		}
		all.Wait()
		begun := 0
		for i, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, workflow.ErrThrottled)
				require.Equal(t, workflow.Refuse, policy)
			} else if !results[i].Found {
				begun++
			}
		}
		require.Equal(t, 3, begun)
		require.Len(t, found(t, engines[0], store.CaseFilter{Key: string(policy)}), 3)
	}
}
