package engine_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// single is a workflow of one task.
func single[In, Out any](t testing.TB, w builder.Work[In, Out]) *builder.Workflow[In] {
	t.Helper()
	b := builder.New[In]("single")
	w.Input = builder.CaseInput(b)
	b.Path(b.Start(), builder.Task(b, "t", w), b.End())
	workflow, err := b.Build()
	require.NoError(t, err)
	return workflow
}

// A queue that is listed has a limit of its own, and every other one that of the engine.
func TestAQueueRunsNoMoreThanItsLimit(t *testing.T) {
	for name, cfg := range map[string]engine.Config{
		"queue": {Queues: map[string]int{"narrow": 3}}, "workers": {Workers: 3, Queues: map[string]int{"wide": 40}},
	} {
		t.Run(name, func(t *testing.T) { runsThreeAtATime(t, cfg) })
	}
}

func runsThreeAtATime(t *testing.T, cfg engine.Config) {
	t.Helper()
	var running, peak atomic.Int32
	started, release := make(chan struct{}, 40), make(chan struct{})
	w := single(t, builder.Work[int, int]{Queue: "narrow", Run: func(_ context.Context, n int) (int, error) {
		now := running.Add(1)
		for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
		}
		started <- struct{}{}
		<-release
		running.Add(-1)
		return n, nil
	}})
	e := enginetest.Open(t, sqlite.Memory(), cfg, w)
	for n := range 40 {
		_, err := w.Start(t.Context(), e, n)
		require.NoError(t, err)
	}
	for range 3 {
		<-started
	}
	states := map[state.JobState]int{}
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{}) {
		require.NoError(t, err)
		states[j.State]++
	}
	require.Equal(t, map[state.JobState]int{state.JobRunning: 3, state.JobPending: 37}, states)
	close(release)
	e.Drain()
	require.LessOrEqual(t, peak.Load(), int32(3))
	counts, err := counted(t, e)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(counts, func(c store.Count) bool {
		return c.What == "item" && c.State == "completed" && c.N == 40
	}), "%+v", counts)
}

func TestHigherPriorityGoesFirstAndThenTheEarlierDue(t *testing.T) {
	var mu sync.Mutex
	var order []string
	record := func(_ context.Context, name string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, name)
		return name, nil
	}
	low, high := builder.New[string]("low"), builder.New[string]("high")
	lowTask := builder.Task(low, "t", builder.Work[string, string]{Input: builder.CaseInput(low), Run: record})
	highTask := builder.Task(high, "t", builder.Work[string, string]{Input: builder.CaseInput(high), Run: record, Priority: 5})
	low.Path(low.Start(), lowTask, low.End())
	high.Path(high.Start(), highTask, high.End())
	lowW, highW := low.MustBuild(), high.MustBuild()

	o := sqlite.Memory()
	idle, err := engine.Config{Workers: -1}.Open(t.Context(), o, lowW, highW)
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		_, err := lowW.Start(t.Context(), idle, name)
		require.NoError(t, err)
	}
	for _, name := range []string{"C", "D"} {
		_, err := highW.Start(t.Context(), idle, name)
		require.NoError(t, err)
	}
	require.NoError(t, idle.Close())
	one, err := engine.Config{Workers: 1}.Open(t.Context(), o, lowW, highW)
	require.NoError(t, err)
	require.NoError(t, one.Drain(t.Context()))
	require.Equal(t, []string{"C", "D", "a", "b"}, order)
	require.NoError(t, one.Close())
}

func TestAClockThatJumps(t *testing.T) {
	w := single(t, builder.Work[int, int]{
		Run:                    func(_ context.Context, n int) (int, error) { return 0, workitem.Failf("busy", "again") },
		OnWorkItemStateChanged: activities.Retry(retry.Constant(3, time.Hour)),
	})
	e := enginetest.New(t, w)
	first, err := w.Start(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	e.Clock().Set(e.Now().Add(-48 * time.Hour))
	second, err := w.Start(t.Context(), e, 2)
	require.NoError(t, err)
	require.Greater(t, second.String(), first.String(), "ids rise though the clock went back")
	e.Drain()
	e.Advance(49*time.Hour + time.Minute)
	e.Advance(2 * time.Hour)
	for _, id := range []workitem.CaseID{first, second} {
		c, err := e.Case(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, state.CaseFailed, c.State, "every attempt was made")
	}
}

func TestAReclaimedJobIsFencedFromItsFormerWorker(t *testing.T) {
	started, finish := make(chan struct{}, 2), make(chan struct{})
	var calls atomic.Int32
	w := single(t, builder.Work[int, int]{Run: func(_ context.Context, n int) (int, error) {
		call := calls.Add(1) // before the test receives from started: it then reclaims the job, and another worker calls this
		started <- struct{}{}
		if call == 1 {
			<-finish // ignores its context, and comes back late
			return -1, nil
		}
		return n, nil
	}})
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, 7)
	require.NoError(t, err)
	<-started
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: id}) {
		require.NoError(t, err)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Reclaim(j.ID)))
		require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Reclaim(workitem.JobID{1})), engine.ErrNotFound)
	}
	<-started
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	close(finish)
	e.Drain()
	require.Equal(t, "7", string(c.Tasks[0].Output), "the second worker's result stands")
}

func TestAHeartbeatKeepsTheLease(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	w := single(t, builder.Work[int, int]{Run: func(_ context.Context, n int) (int, error) {
		close(started)
		<-finish
		return n, nil
	}})
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Lease: 30 * time.Second}, w)
	id, err := w.Start(t.Context(), e, 7)
	require.NoError(t, err)
	<-started
	before := e.Now()
	for range 6 {
		e.Clock().Set(e.Now().Add(10 * time.Second))
	}
	var lease time.Time
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: id}) {
		require.NoError(t, err)
		require.Equal(t, state.JobRunning, j.State)
		lease = j.Lease
	}
	require.Greater(t, lease.Sub(before), 60*time.Second)
	close(finish)
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
}

func TestAWorkflowThatIsNotThereIsLeftAlone(t *testing.T) {
	w := single(t, builder.Work[int, int]{Run: func(_ context.Context, n int) (int, error) { return n, nil }})
	o := sqlite.Memory()
	idle, err := engine.Config{Workers: -1}.Open(t.Context(), o, w)
	require.NoError(t, err)
	id, err := w.Start(t.Context(), idle, 1)
	require.NoError(t, err)
	require.NoError(t, idle.Close())

	other, err := engine.Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, other.Drain(t.Context()))
	require.ErrorIs(t, enginetest.Do(t.Context(), other, workflow.Cancel(id, nil)), engine.ErrUnknown)
	require.NoError(t, other.Close())

	again := enginetest.Open(t, o, engine.Config{}, w)
	again.Drain()
	c, err := again.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

// counted reads the numbers of cases, items and jobs.
func counted(t testing.TB, v store.Viewer) (counts []store.Count, err error) {
	t.Helper()
	err = v.View(t.Context(), func(r store.Reader) (err error) {
		counts, err = r.Counts(t.Context())
		return err
	})
	return counts, err
}
