package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
)

// gated is a function whose runs wait until a gate is open.
func gated(queue string, gate <-chan struct{}) *builder.FuncRef[int, int] {
	return builder.MustFunc("f", func(ctx context.Context, n int) (int, error) {
		select {
		case <-gate:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, builder.OnQueue(queue))
}

// What waits in other engines, or in none, counts for the bound of a queue, also in an engine that only starts.
func TestAFullQueueOfAFleetRefusesStarts(t *testing.T) {
	for _, queue := range []string{"", "mail"} {
		t.Run("queue "+queue, func(t *testing.T) {
			f := newFleet(t)
			gate := make(chan struct{})
			most := map[string]int{queue: 10}
			work := gated(queue, gate)
			front := f.open(engine.Config{Workers: -1, MaxPending: most}, work)
			startAll(t, front, work, numbers(10)...)
			_, err := work.Run(t.Context(), front, 1)
			require.ErrorIs(t, err, engine.ErrFull)
			require.ErrorContains(t, err, "10 jobs wait to begin, and 10 may")

			workers := gated(queue, gate)
			worker := f.open(engine.Config{Workers: 2, MaxPending: most}, workers)
			f.until("SELECT count(*) FROM tasq.jobs WHERE state = 'running'", exactly(2))
			for range 2 { // what the workers took is noticed when a start would be refused
				require.Eventually(t, func() bool {
					_, err := work.Run(t.Context(), front, 1)
					return err == nil
				}, 10*time.Second, 30*time.Millisecond)
			}
			require.Equal(t, 10, f.sql("SELECT count(*) FROM tasq.jobs WHERE state = 'pending'"))
			require.Eventually(t, func() bool { // each engine counts what the other has started, after its next look
				_, err := workers.Run(t.Context(), worker, 1)
				return errors.Is(err, engine.ErrFull)
			}, 10*time.Second, 200*time.Millisecond)
			_, err = work.Run(t.Context(), front, 1)
			require.ErrorIs(t, err, engine.ErrFull)

			r, err := front.Do(t.Context(), workflow.Queues())
			require.NoError(t, err)
			require.Len(t, r.Queues, 1)
			require.Equal(t, 10, r.Queues[0].MaxPending)
			close(gate)
			f.until("SELECT count(*) FROM tasq.jobs WHERE state IN ('pending', 'running')", exactly(0))
			startAll(t, front, work, numbers(10)...)
		})
	}
}

// A start waits until another engine has worked off enough.
func TestAFullQueueOfAFleetHasStartsWait(t *testing.T) {
	f := newFleet(t)
	gate := make(chan struct{})
	work := gated("", gate)
	front := f.open(engine.Config{Workers: -1, MaxPending: map[string]int{"": 5}, WaitWhenFull: true}, work)
	runs := startAll(t, front, work, numbers(5)...)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := work.Run(short, front, 1)
	require.ErrorIs(t, err, engine.ErrFull)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	f.open(engine.Config{Workers: 2}, gated("", gate))
	close(gate)
	endAll(t, front, append(runs, startAll(t, front, work, numbers(50)...)...))
}

// The bound also applies to what an engine starts after it was opened on a database with a backlog.
func TestABacklogCountsWhenAnEngineIsOpened(t *testing.T) {
	f := newFleet(t)
	work := gated("", nil)
	first := f.open(engine.Config{Workers: -1}, work)
	startAll(t, first, work, numbers(7)...)
	require.NoError(t, first.Close())
	work = gated("", nil)
	second := f.open(engine.Config{Workers: -1, MaxPending: map[string]int{"": 5}}, work)
	_, err := work.Run(t.Context(), second, 1)
	require.ErrorIs(t, err, engine.ErrFull)
}
