package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
)

// A start is refused while its queue is full, and no longer; one that is done already is answered as before.
func TestAFullQueueRefusesStarts(t *testing.T) {
	var c callLog
	f := builder.MustFunc("f", busyFor(&c, time.Second))
	cfg := engine.Config{Workers: 2, MaxPending: map[string]int{"": 3}}
	inBubble(t, cfg, func(t *testing.T, e *engine.Engine) {
		startAll(t, e, f, numbers(2)...)
		<-time.After(time.Millisecond) // both run
		runs := startAll(t, e, f, numbers(2)...)
		keyed, err := f.Run(t.Context(), e, 7, workflow.Key("seven"))
		require.NoError(t, err)
		_, err = f.Run(t.Context(), e, 8)
		require.ErrorIs(t, err, engine.ErrFull)
		require.ErrorContains(t, err, `queue "" is full: 3 jobs wait to begin, and 3 may`)
		require.Equal(t, "full", engine.Code(err))
		again, err := f.Run(t.Context(), e, 7, workflow.Key("seven"))
		require.NoError(t, err)
		require.Equal(t, keyed.ID, again.ID)

		r, err := e.Do(t.Context(), workflow.Queues())
		require.NoError(t, err)
		require.Equal(t, []workflow.QueueInfo{{Workers: 2, Defined: 2, Running: 2, Waiting: 3, MaxPending: 3, Oldest: r.Queues[0].Oldest}}, r.Queues)
		endAll(t, e, runs)
		<-time.After(time.Millisecond) // the last one has begun
		startAll(t, e, f, numbers(3)...)
	}, f)
}

// An engine with WaitWhenFull has the caller wait for room, as long as its context lasts.
func TestAFullQueueHasStartsWait(t *testing.T) {
	var c callLog
	f := builder.MustFunc("f", busyFor(&c, time.Second))
	cfg := engine.Config{Workers: 1, MaxPending: map[string]int{"": 2}, WaitWhenFull: true}
	inBubble(t, cfg, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, f, numbers(10)...)
		require.Equal(t, 7*time.Second, time.Since(begin).Round(time.Second))
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := f.Run(short, e, 1)
		require.ErrorIs(t, err, engine.ErrFull)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		endAll(t, e, runs)
	}, f)
}

// A job of a low priority is served between those of a high one, once it has waited as long as the difference is worth.
func TestLowPrioritiesAge(t *testing.T) {
	for _, aging := range []time.Duration{0, 2 * time.Second} {
		var order []int
		f := builder.MustFunc("f", func(_ context.Context, n int) (int, error) {
			<-time.After(time.Second)
			order = append(order, n)
			return n, nil
		})
		inBubble(t, engine.Config{Workers: 1, Aging: aging}, func(t *testing.T, e *engine.Engine) {
			run := func(n, priority int) builder.Run[int] {
				r, err := f.Run(t.Context(), e, n, workflow.Priority(priority))
				require.NoError(t, err)
				return r
			}
			runs := []builder.Run[int]{run(1, 2)}
			low := run(0, 0)
			for n := 2; n <= 20; n++ {
				runs = append(runs, run(n, 2))
				<-time.After(time.Second)
			}
			endAll(t, e, append(runs, low))
			if at := slices.Index(order, 0); aging == 0 {
				require.Equal(t, 20, at, "it is the last")
			} else {
				require.InDelta(t, 5, at, 2, "%v", order) // it waits for 4 s, and one job a second begins
			}
		}, f)
	}
}

// So is one that no engine holds: an engine without workers leaves its jobs to the others, which take the most urgent ones.
func TestLowPrioritiesAgeInAFleet(t *testing.T) {
	f := newFleet(t)
	aging := 10 * time.Millisecond
	var mu sync.Mutex
	var order []int
	begun, all := make(chan struct{}), make(chan struct{})
	work := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", func(_ context.Context, n int) (int, error) {
			if n < 0 { // holds the worker until all are there
				close(begun)
				<-all
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, n)
			return n, nil
		})
	}
	w := work()
	front := f.open(engine.Config{Workers: -1, Aging: aging}, w)
	f.open(engine.Config{Workers: 1, Aging: aging}, work())
	var runs []builder.Run[int]
	run := func(n, priority int) {
		r, err := w.Run(t.Context(), front, n, workflow.Priority(priority))
		require.NoError(t, err)
		runs = append(runs, r)
	}
	run(-1, 9)
	<-begun
	for n := range 10 { // the worker may hold some of them already
		run(1000+n, 5)
	}
	run(0, 0)
	<-time.After(10 * aging) // it has waited for longer than the head start of the others
	for n := range 100 {
		run(n+1, 5)
	}
	close(all)
	endAll(t, front, runs)
	require.Less(t, slices.Index(order, 0), 30, "%v", order)
}
