package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// stepReads counts how often the steps of a job are read from the store.
type stepReads struct {
	store.Opener
	n atomic.Int64
}

// Open implements store.Opener.
func (c *stepReads) Open(ctx context.Context, o store.Options) (store.Store, error) {
	return (&storehook.Opener{Opener: c.Opener, Tx: func(tx store.Tx) store.Tx { return &stepReadsTx{tx, &c.n} }}).Open(ctx, o)
}

type stepReadsTx struct {
	store.Tx
	n *atomic.Int64
}

// Steps implements store.Tx.
func (t *stepReadsTx) Steps(ctx context.Context, owner [16]byte) ([]*workitem.Step, error) {
	t.n.Add(1)
	return t.Tx.Steps(ctx, owner)
}

// errands does a step, waits for an event, and so on.
func errands(ctx context.Context, n int) (int, error) {
	for i := range n {
		if _, err := step.Do(ctx, fmt.Sprint("errand ", i), func(context.Context) (int, error) { return i, nil }); err != nil {
			return 0, err
		}
		if _, err := step.Await[int](ctx, "next", step.Named(fmt.Sprint("wait ", i))); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// A function that waited continues without a look into the database, but for the first time after the process was started again.
func TestAResumeReadsNothing(t *testing.T) {
	reads := &stepReads{Opener: sqlite.Memory()}
	w, _ := function(t, "errands", errands)
	e := enginetest.Open(t, reads, engine.Config{}, w)
	id := start(t, e, w, 6)
	e.Drain()
	next := func(want int64) {
		t.Helper()
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "next", 0)))
		e.Drain()
		require.Equal(t, want, reads.n.Load())
	}
	next(0)
	next(0)
	e.Crash()
	e.Drain()
	next(1)
	next(1)
	next(1)
	n, err := engine.CheckRecalled(t.Context(), e.Engine)
	require.NoError(t, err)
	require.Positive(t, n)
	reads.n.Store(1) // the check has read, too
	next(1)
	require.Equal(t, "completed: 6", outcome(t, e, id))
	_, steps, err := engine.Cached(t.Context(), e.Engine)
	require.NoError(t, err)
	require.Zero(t, steps)
	e.Check()
}

// A transaction may put several entries into the journal, of which each is taken in.
func TestAResumeAfterATransactionOfManyCommandsReadsNothing(t *testing.T) {
	reads := &stepReads{Opener: sqlite.Memory()}
	w, _ := function(t, "errands", errands)
	e := enginetest.Open(t, reads, engine.Config{}, w)
	id := start(t, e, w, 4)
	e.Drain()
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		for _, key := range []string{"a", "b", "c"} {
			if err := enginetest.Do(t.Context(), tx, workflow.Send(id, "next", 0, workflow.Key(key))); err != nil {
				return err
			}
		}
		return nil
	}))
	e.Drain()
	require.Zero(t, reads.n.Load())
	n, err := engine.CheckRecalled(t.Context(), e.Engine)
	require.NoError(t, err)
	require.Positive(t, n)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "next", 0)))
	e.Drain()
	require.Equal(t, "completed: 4", outcome(t, e, id))
	e.Check()
}

// What is remembered is bounded, and what is not is read.
func TestStepCacheIsBounded(t *testing.T) {
	t.Parallel()
	reads := &stepReads{Opener: sqlite.Memory()}
	w, _ := function(t, "many", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			if _, err := step.Now(ctx, fmt.Sprint("now ", i)); err != nil {
				return 0, err
			}
		}
		_, err := step.Await[int](ctx, "next")
		return n, err
	})
	e := enginetest.Open(t, reads, engine.Config{}, w)
	var ids []workitem.CaseID
	for range 5 {
		ids = append(ids, start(t, e, w, 6000))
		e.Drain()
		_, steps, err := engine.Cached(t.Context(), e.Engine)
		require.NoError(t, err)
		require.LessOrEqual(t, steps, 20_000)
	}
	for _, id := range ids {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "next", 0)))
		e.Drain()
		require.Equal(t, "completed: 6000", outcome(t, e, id))
	}
	require.GreaterOrEqual(t, reads.n.Load(), int64(2))
	_, steps, err := engine.Cached(t.Context(), e.Engine)
	require.NoError(t, err)
	require.Zero(t, steps)
}

// A case that sleeps for long leaves memory at once; one that waits for an event stays.
func TestALongSleepLeavesMemory(t *testing.T) {
	w, _ := function(t, "sleep", func(ctx context.Context, seconds int) (int, error) {
		if seconds == 0 {
			_, err := step.Await[int](ctx, "next", step.Timeout(24*time.Hour))
			return 0, err
		}
		return seconds, step.Sleep(ctx, "sleep", time.Duration(seconds)*time.Second)
	})
	e := enginetest.New(t, w)
	for _, c := range []struct{ seconds, cases int }{{3600, 0}, {59, 1}, {60, 1}, {0, 2}} {
		start(t, e, w, c.seconds)
		e.Drain()
		cases, _, err := engine.Cached(t.Context(), e.Engine)
		require.NoError(t, err)
		require.Equal(t, c.cases, cases, "%d s", c.seconds)
	}
	e.Advance(time.Hour)
	cases, _, err := engine.Cached(t.Context(), e.Engine)
	require.NoError(t, err)
	require.Equal(t, 1, cases)
	e.Check()
}
