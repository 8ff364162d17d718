package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// A loop of automatic tasks is stopped after some thousand rounds, long before it has taken memory; one that leaves
// continues, also if it has gone round as often in its life.
func TestALoopOfAutomaticTasks(t *testing.T) {
	t.Parallel()
	var rounds, most int
	b := builder.New[struct{}]("loop")
	work := builder.Task(b, "work", builder.Work[struct{}, struct{}]{Auto: true, Join: builder.Xor, Split: builder.Xor})
	wait := builder.Task(b, "wait", builder.Work[struct{}, struct{}]{Split: builder.Xor})
	b.Path(b.Start(), work)
	builder.Flow(b, work, work).When(func(struct{}) bool {
		rounds++
		return rounds < most
	})
	builder.Flow(b, work, wait).Otherwise()
	builder.Flow(b, wait, work).When(func(struct{}) bool { return true })
	builder.Flow(b, wait, b.End()).Otherwise()
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{}, w)

	most = 7000
	id, err := w.Start(t.Context(), e, struct{}{})
	require.NoError(t, err)
	for range 2 { // 21,000 rounds in all, and never too many in one command
		rounds = 0
		it := live(t, e, id, "wait")
		require.NoError(t, wait.Start(t.Context(), e, it.ID))
		require.NoError(t, wait.Complete(t.Context(), e, it.ID, struct{}{}))
	}
	rounds, most = 0, 1<<60
	it := live(t, e, id, "wait")
	require.NoError(t, wait.Start(t.Context(), e, it.ID))
	err = wait.Complete(t.Context(), e, it.ID, struct{}{})
	require.ErrorIs(t, err, engine.ErrRunaway)
	require.ErrorContains(t, err, "it enabled task work of workflow loop more than 10000 times")
	require.Less(t, rounds, 21_000)
	require.Equal(t, workitem.Started, live(t, e, id, "wait").State, "nothing of it happened")
}

// A job whose result would have the case go round without end has no one to get the refusal: that is an incident, and
// the case stays as it was.
func TestAJobWhoseResultIsARunawayIsAnIncident(t *testing.T) {
	b := builder.New[struct{}]("loop")
	work := builder.Task(b, "work", builder.Work[struct{}, struct{}]{
		Run: func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }})
	round := builder.Task(b, "round", builder.Work[struct{}, struct{}]{Auto: true, Join: builder.Xor, Split: builder.Xor})
	b.Path(b.Start(), work, round)
	builder.Flow(b, round, round).When(func(struct{}) bool { return true })
	builder.Flow(b, round, b.End()).Otherwise()
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{}, w)
	id, err := w.Start(t.Context(), e, struct{}{})
	require.NoError(t, err)
	e.Drain()
	var kinds []string
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{}) {
		require.NoError(t, err)
		kinds = append(kinds, i.Kind)
		require.Equal(t, "runaway", i.Failure.Code)
		require.Contains(t, i.Failure.Message, "it enabled task round of workflow loop more than")
	}
	require.Equal(t, []string{state.IncidentRunaway}, kinds)
	require.Equal(t, workitem.Started, live(t, e, id, "work").State)
}

// A timer whose command goes round without end is given up at its first try. Once the loop has a way out, it is fired again.
func TestATimerThatIsARunawayIsAnIncidentAtOnce(t *testing.T) {
	loops := true
	b := builder.New[struct{}]("loop")
	wait := builder.Task(b, "wait", builder.Work[struct{}, struct{}]{Timers: []activities.Timer{activities.Escalate("late", time.Minute,
		func(_ context.Context, it *activities.Item) error { return it.Cancel(nil) })}})
	round := builder.Task(b, "round", builder.Work[struct{}, struct{}]{Auto: true, Join: builder.Xor, Split: builder.Xor})
	b.Path(b.Start(), wait, round)
	builder.Flow(b, round, round).When(func(struct{}) bool { return loops })
	builder.Flow(b, round, b.End()).Otherwise()
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, struct{}{})
	require.NoError(t, err)
	e.Advance(time.Minute)
	var open []*store.Incident
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{Kind: state.IncidentRunaway, Code: new("runaway")}) {
		require.NoError(t, err)
		open = append(open, i)
	}
	require.Len(t, open, 1)
	require.Equal(t, "late", open[0].Job.Name)
	require.Equal(t, 1, open[0].Job.Attempt, "each try takes as long as the bounds allow")
	require.Equal(t, workitem.Initialized, live(t, e, id, "wait").State, "nothing of it happened")

	loops = false
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.RetryIncident(open[0].ID)))
	err = enginetest.Do(t.Context(), e, workflow.RetryIncident(open[0].ID))
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.ErrorContains(t, err, "incident "+open[0].ID.String()+" is not open, since it has ended")
	e.Drain()
	require.Equal(t, "completed", outcome(t, e, id))
}

// A task may have more automatic items than the bound on the activations of a task; the nightly form has 100,000.
func TestATaskOfManyAutomaticItemsIsNoRunaway(t *testing.T) {
	n := testsize.Pick(12_000, 12_000, 100_000)
	b := builder.New[struct{}]("wide")
	task := builder.Task(b, "task", builder.Work[int, struct{}]{
		Auto:                   true,
		Items:                  func(context.Context, *activities.Activation) ([]int, error) { return make([]int, n), nil },
		OnWorkItemStateChanged: func(context.Context, *activities.Change) error { return nil },
	})
	b.Path(b.Start(), task, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e, err := engine.Open(t.Context(), sqlite.Memory(), w)
	require.NoError(t, err)
	defer e.Close()
	id, err := w.Start(t.Context(), e, struct{}{})
	require.NoError(t, err)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

// A loop in which each round is a command, and takes no time, ends on a clock that does not advance: the tests would
// hang otherwise.
func TestALoopThatTakesNoTime(t *testing.T) {
	t.Parallel()
	b := builder.New[any]("tick")
	wait := builder.Task(b, "wait", builder.Work[any, any]{
		Join: builder.Xor, Split: builder.Xor, Timers: []activities.Timer{activities.Escalate("at-once", 0,
			func(_ context.Context, it *activities.Item) error { return it.Cancel(nil) })},
	})
	b.Path(b.Start(), wait)
	builder.Flow(b, wait, wait).If(builder.Map(builder.CaseInput(b), func(any) bool { return true }))
	builder.Flow(b, wait, b.End()).Otherwise()
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	for _, moment := range []string{"2030-01-01T00:00:00.000Z", "2030-01-01T00:01:00.000Z"} {
		err = e.Engine.Drain(t.Context())
		require.ErrorIs(t, err, engine.ErrRunaway)
		require.ErrorContains(t, err, "at one moment, "+moment+", case "+id.String()+" went round more than 5000 times: "+
			"task wait was enabled 5000 times")
		require.ErrorIs(t, e.Engine.Drain(t.Context()), engine.ErrRunaway, "it stands, and says so again")
		e.Clock().Set(e.Clock().Now().Add(time.Minute)) // lets it continue, once somebody looks
	}
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	e.Drain()
	require.Equal(t, "canceled", outcome(t, e, id))
}

// A completion handler whose command goes round without end is an incident of that kind once a job has called it, and is not called ten times.
func TestAHandlerThatIsARunawayIsAnIncident(t *testing.T) {
	t.Parallel()
	loops, calls := true, 0
	b := builder.New[struct{}]("loop")
	round := builder.Task(b, "round", builder.Work[struct{}, struct{}]{Auto: true, Join: builder.Xor, Split: builder.Xor})
	b.Path(b.Start(), round)
	builder.Flow(b, round, round).When(func(struct{}) bool { return loops })
	builder.Flow(b, round, b.End()).Otherwise()
	loop, err := b.Build()
	require.NoError(t, err)
	next := builder.Handler("next", func(ctx context.Context, c *builder.Completion[int], _ struct{}) error {
		calls++
		_, err := loop.Start(ctx, c, struct{}{})
		return err
	})
	f := builder.MustFunc("work", func(context.Context, int) (int, error) { return 0, nil }, builder.Handles(next))
	e := enginetest.New(t, f, loop)
	_, err = f.Run(t.Context(), e, 1, builder.OnComplete(next, struct{}{}))
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.Equal(t, 2, calls, "with the command that ended the case, and by a job")
	var open []*store.Incident
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{}) {
		require.NoError(t, err)
		open = append(open, i)
	}
	require.Len(t, open, 1)
	require.Equal(t, state.IncidentRunaway, open[0].Kind)
	require.Equal(t, "runaway", open[0].Failure.Code)
	require.Equal(t, "next", open[0].Job.Name)

	loops = false
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.RetryIncident(open[0].ID)))
	e.Drain()
	require.Equal(t, 3, calls)
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{}) {
		require.NoError(t, err)
		require.Nil(t, i)
	}
}
