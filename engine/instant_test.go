package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// onProcs runs f once on each number of processors.
func onProcs(t *testing.T, f func(t *testing.T)) {
	for procs := range 4 {
		t.Run(fmt.Sprintf("%d processors", procs+1), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs + 1))
			f(t)
		})
	}
}

// Timers and jobs that are due at one instant act in the order of their creation, whatever the number of processors, and after a
// restart as before. The nightly form has ten times as many.
func TestJobsDueAtOneTimeActInOrderOfCreation(t *testing.T) {
	cases := testsize.Pick(50, 100, 1000)
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", crash), func(t *testing.T) {
			onProcs(t, func(t *testing.T) {
				ctx := t.Context()
				sleeper := builder.MustFunc("sleeper", func(ctx context.Context, n int) (int, error) {
					return n, step.Sleep(ctx, "nap", time.Hour)
				}, builder.Keep(builder.Forever))
				b := builder.New[any]("timed")
				b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Timeout: time.Hour}), b.End())
				timed := b.MustBuild()
				e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: cases}, sleeper, timed)
				var want []workitem.CaseID
				require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
					for i := range cases {
						var id workitem.CaseID
						var err error
						if i%3 == 0 {
							var run builder.Run[int]
							run, err = sleeper.Run(ctx, tx, i)
							id = run.ID
						} else {
							id, err = timed.Start(ctx, tx, nil)
						}
						if err != nil {
							return err
						}
						want = append(want, id)
					}
					return nil
				}))
				e.Drain()
				last := int64(0)
				for entry, err := range store.AllEntries(ctx, e, store.JournalFilter{}) {
					require.NoError(t, err)
					last = entry.Seq
				}
				if crash {
					e.Crash()
				}
				e.Advance(time.Hour)
				var got []workitem.CaseID
				for entry, err := range store.AllEntries(ctx, e, store.JournalFilter{After: last}) {
					require.NoError(t, err)
					if entry.Command == "job claim" || entry.Command == "job fire" {
						got = append(got, entry.Root)
					}
				}
				require.Equal(t, want, got)
			})
		})
	}
}

// Of forty tasks whose timeouts are over at one instant, the first one fails the case, in every run.
func TestTheFirstOfEqualTimeoutsFailsTheCase(t *testing.T) {
	onProcs(t, func(t *testing.T) {
		b := builder.New[any]("race", builder.AllowUnsound(verify.ImproperCompletion))
		fork := builder.Task(b, "fork", builder.Work[any, any]{Auto: true, Split: builder.And})
		b.Path(b.Start(), fork)
		for i := range 40 {
			b.Path(fork, builder.Task(b, fmt.Sprintf("t%d", i), builder.Work[any, any]{Timeout: time.Hour}), b.End())
		}
		w, err := b.Build()
		require.NoError(t, err)
		e := enginetest.New(t, w)
		for range 10 {
			id, err := w.Start(t.Context(), e, nil)
			require.NoError(t, err)
			e.Advance(time.Hour)
			c, err := e.Case(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, state.CaseFailed, c.State)
			for i := range 40 {
				task, _ := c.Net.TaskByName(fmt.Sprintf("t%d", i))
				require.Equal(t, i == 0, c.Tasks[task].State == state.TaskFailed, "t%d", i)
			}
		}
	})
}
