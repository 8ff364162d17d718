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
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// A debounced start begins when none with its key has come for a time, with the last input, and at the latest so long after the first.
func TestDebounce(t *testing.T) {
	f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil })
	e := enginetest.New(t, f)
	start := func(input string) builder.Run[string] {
		t.Helper()
		r, err := f.Run(t.Context(), e, input, workflow.BusinessKey("ada"), workflow.Debounce(5*time.Second, 12*time.Second), workflow.By("ann"))
		require.NoError(t, err)
		e.Drain()
		return r
	}
	ended := func(r builder.Run[string]) string {
		t.Helper()
		c := caseOf(t, e, r.ID)
		return fmt.Sprint(c.State, " ", string(c.Output), " ", e.Now().Sub(caseOf(t, e, r.ID).Ended))
	}
	a := start("a")
	says(t, e, a.ID, "the case begins in 5s, at 2030-01-01T00:00:05Z, unless another start with its key takes its place")
	e.Advance(4 * time.Second)
	b := start("b")
	require.Equal(t, "replaced", caseOf(t, e, a.ID).Failure.Code)
	e.Advance(4 * time.Second)
	c := start("c")
	e.Advance(3 * time.Second)
	d := start("d")
	says(t, e, d.ID, "the case begins in 1s")
	e.Advance(999 * time.Millisecond)
	require.Equal(t, state.CaseStarted, caseOf(t, e, d.ID).State)
	e.Advance(time.Millisecond)
	require.Equal(t, `completed "d" 0s`, ended(d), "it is put off by 12 s in all")
	for _, r := range []builder.Run[string]{b, c} {
		require.Equal(t, state.CaseCanceled, caseOf(t, e, r.ID).State)
	}
	next := start("e")
	e.Advance(5 * time.Second)
	require.Equal(t, `completed "e" 0s`, ended(next), "one that has completed does not hold the key")
	_, err := f.Run(t.Context(), e, "x", workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Refuse))
	require.NoError(t, err)
}

// A debounced run that has begun is not disturbed by further starts, which are debounced among themselves; other starts meet a holder of
// the key, and a debounced one is refused by them.
func TestDebounceBesideARunThatGoesOn(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	opts := []workflow.Option{workflow.BusinessKey("ada"), workflow.Debounce(time.Minute, 0)}
	first, err := f.Run(t.Context(), e, "a", opts...)
	require.NoError(t, err)
	e.Advance(2 * time.Minute)
	e.Crash(f)
	second, err := f.Run(t.Context(), e, "b", opts...)
	require.NoError(t, err)
	third, err := f.Run(t.Context(), e, "c", opts...)
	require.NoError(t, err)
	_, err = f.Run(t.Context(), e, "d", workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Refuse))
	require.ErrorIs(t, err, workflow.ErrKeyTaken)
	e.Advance(3 * time.Hour)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, first.ID).State)
	require.Equal(t, state.CaseCanceled, caseOf(t, e, second.ID).State)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, third.ID).State)

	holder, err := f.Run(t.Context(), e, "e", workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Refuse))
	require.NoError(t, err)
	_, err = f.Run(t.Context(), e, "f", opts...)
	var taken *workflow.KeyTakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, holder.ID, taken.Case)
}

func TestDebounceThatCannotBe(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	for want, opts := range map[string][]workflow.Option{
		"need a business key":      {workflow.Debounce(time.Second, 0)},
		"give more than 0":         {workflow.BusinessKey("a"), workflow.Debounce(0, time.Second)},
		"at most by 1s":            {workflow.BusinessKey("a"), workflow.Debounce(time.Minute, time.Second)},
		"give one of them":         {workflow.BusinessKey("a"), workflow.Debounce(time.Minute, 0), workflow.After(time.Second)},
		`are for IfTaken "debou`:   {workflow.BusinessKey("a"), workflow.Debounce(time.Minute, 0), workflow.IfTaken(workflow.Return)},
		"is debounced by 0s: give": {workflow.BusinessKey("a"), workflow.IfTaken(workflow.Debounced)},
	} {
		_, err := f.Run(t.Context(), e, "a", opts...)
		require.ErrorIs(t, err, workflow.ErrBadCommand)
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, everyCase(t, e))
}

// Random starts of some keys, with crashes: what runs is what a model of debouncing says, with its input and at its time.
func TestRandomDebounces(t *testing.T) {
	for seed := range uint64(testsize.Pick(2, 8, 200)) {
		rnd := rand.New(rand.NewPCG(seed, 14))
		quiet, longest := time.Duration(1+rnd.IntN(20))*time.Second, time.Duration(rnd.IntN(3))*30*time.Second
		var e *enginetest.Engine
		var mu sync.Mutex
		var got, want []string
		f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, s+" "+e.Now().Format(time.TimeOnly))
			return s, nil
		})
		e = enginetest.New(t, f)
		type wait struct {
			input      string
			first, due time.Time
		}
		pending := make(map[string]*wait)
		for i := range 60 {
			key, input := fmt.Sprint("k", rnd.IntN(3)), fmt.Sprint(i)
			_, err := f.Run(t.Context(), e, input, workflow.BusinessKey(key), workflow.Debounce(quiet, longest))
			require.NoError(t, err)
			p := pending[key]
			if p == nil {
				p = &wait{first: e.Now()}
				pending[key] = p
			}
			p.input, p.due = input, e.Now().Add(quiet)
			if last := p.first.Add(longest); longest > 0 && last.Before(p.due) {
				p.due = last
			}
			if rnd.IntN(10) == 0 {
				e.Crash(f)
			}
			e.Advance(time.Duration(rnd.IntN(15)) * time.Second)
			for key, p := range pending {
				if !p.due.After(e.Now()) {
					want = append(want, p.input+" "+p.due.Format(time.TimeOnly))
					delete(pending, key)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// Starts on several engines at once leave one run that begins.
func TestDebounceInAFleet(t *testing.T) {
	f := newFleet(t)
	fn := builder.MustFunc("f", func(ctx context.Context, s string) (string, error) {
		return s, step.Sleep(ctx, "nap", time.Millisecond)
	})
	engines := []*engine.Engine{f.open(engine.Config{}, fn), f.open(engine.Config{}, fn)}
	var all sync.WaitGroup
	runs := make(chan builder.Run[string], 20)
	for i := range cap(runs) {
		all.Go(func() {
			r, err := fn.Run(t.Context(), engines[i%2], "x", workflow.BusinessKey("ada"), workflow.Debounce(time.Hour, 0))
			for errors.Is(err, store.ErrUnavailable) { // on a slow machine it waits for longer than a lock timeout: nothing has happened
				r, err = fn.Run(t.Context(), engines[i%2], "x", workflow.BusinessKey("ada"), workflow.Debounce(time.Hour, 0))
			}
			if err != nil {
				t.Error(err)
			}
			runs <- r
		})
	}
	all.Wait()
	close(runs)
	live := 0
	for r := range runs {
		c, err := engines[0].Case(t.Context(), r.ID)
		require.NoError(t, err)
		if c.State == state.CaseStarted {
			live++
		}
	}
	require.Equal(t, 1, live)
}
