package engine_test

import (
	"context"
	"errors"
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

func TestAFailedItemIsTriedAgainWithBackoffUntilThePolicyGivesUp(t *testing.T) {
	var tried []time.Time
	var e *enginetest.Engine
	a := newArticle(t, builder.Work[prompt, draft]{
		Run: func(context.Context, prompt) (draft, error) {
			tried = append(tried, e.Now())
			return draft{}, errors.New("overloaded")
		},
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(4, time.Second)),
	})
	e = enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []string{"draft.1.1 failed 1 error", "draft.1.2 initialized 2"}, items(t, e, id))
	e.Advance(time.Minute)

	require.Len(t, tried, 4, "attempts are counted in all")
	for i, wait := range []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second} {
		require.Equal(t, wait, tried[i].Sub(tried[0]), "attempt %d", i+1)
	}
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State, "a failed item without a successor fails the task, and the case")
	require.Equal(t, "error: overloaded", c.Failure.String())
	require.Equal(t, []string{
		"draft.1.1 failed 1 error", "draft.1.2 failed 2 error", "draft.1.3 failed 3 error", "draft.1.4 failed 4 error",
	}, items(t, e, id))
}

func TestAFatalFailureIsNotTriedAgain(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{
		Run: func(context.Context, prompt) (draft, error) {
			return draft{}, workitem.Fatal(workitem.Failf("no-such-model", "the model does not exist"))
		},
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(4, time.Second)),
	})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.Equal(t, []string{"draft.1.1 failed 1 no-such-model"}, items(t, e, id))
}

func TestAServerMaySayHowLongToWait(t *testing.T) {
	var calls atomic.Int32
	a := newArticle(t, builder.Work[prompt, draft]{
		Run: func(context.Context, prompt) (draft, error) {
			if calls.Add(1) == 1 {
				return draft{}, retry.After(30*time.Second, errors.New("slow down"))
			}
			return draft{Body: "x"}, nil
		},
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(4, time.Second)),
	})
	e := enginetest.New(t, a)
	_, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Advance(29 * time.Second)
	require.EqualValues(t, 1, calls.Load())
	e.Advance(time.Second)
	require.EqualValues(t, 2, calls.Load())
}

func TestAPanicInAJobIsAFailure(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(context.Context, prompt) (draft, error) { panic("oops") }})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []string{"draft.1.1 failed 1 panic"}, items(t, e, id))
	for row := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
		require.Equal(t, "oops", row.Failure.Message)
		require.Contains(t, string(row.Failure.Details), "jobs_test.go")
	}
}

func TestAnOutputThatItsTypeRefusesIsAFailure(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(context.Context, prompt) (draft, error) { return draft{}, nil }})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []string{"draft.1.1 failed 1 invalid"}, items(t, e, id))
}

func TestAJobThatKillsItsWorkerIsGivenUp(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	calls := make(chan struct{}, 100)
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(context.Context, prompt) (draft, error) {
		calls <- struct{}{}
		<-hang
		return draft{}, errors.New("late")
	}})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	for range 4 {
		<-calls
		require.NoError(t, e.Update(t.Context(), func(*engine.Tx) error { return nil }))
		e.Crash()
	}
	e.Drain()
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: id, Kind: state.JobRun}) {
		require.NoError(t, err)
		require.Equal(t, state.JobFailed, j.State)
		require.Equal(t, workitem.CodeCrash, j.Failure.Code)
	}
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{Root: id}) {
		require.NoError(t, err)
		require.Equal(t, state.IncidentCrash, i.Kind)
		require.Equal(t, workitem.CodeCrash, i.Failure.Code)
		id = workitem.CaseID{}
	}
	require.Zero(t, id, "there is an incident")
	require.Equal(t, []string{"draft.1.1 started 1"}, items(t, e, id), "a person has to look")
}

func TestCanceledJobsAreInterruptedAndTheirResultsRefused(t *testing.T) {
	running := make(chan struct{})
	told := make(chan error, 1)
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(ctx context.Context, _ prompt) (draft, error) {
		close(running)
		<-ctx.Done()
		told <- ctx.Err()
		return draft{Body: "too late"}, nil
	}})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	<-running
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, workitem.Failf("withdrawn", "the author withdrew it"))))
	require.ErrorIs(t, <-told, context.Canceled)
	e.Drain()
	require.Equal(t, []string{"draft.1.1 canceled 1"}, items(t, e, id))
}

func TestCloseWaitsForRunningJobs(t *testing.T) {
	running, finish := make(chan struct{}), make(chan struct{})
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(ctx context.Context, p prompt) (draft, error) {
		close(running)
		<-finish
		return write(ctx, p)
	}})
	o := sqlite.Memory()
	e, err := engine.Open(t.Context(), o, a)
	require.NoError(t, err)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	<-running
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	close(finish)
	require.NoError(t, <-closed)
	_, err = a.Start(t.Context(), e, prompt{Text: "nets"})
	require.ErrorIs(t, err, engine.ErrClosed)

	again := enginetest.Open(t, o, engine.Config{}, a)
	again.Drain()
	require.Equal(t, []string{"draft.1.1 completed 1", "review.1.1 initialized 1"}, items(t, again, id))
}

func TestCloseGivesBackWhatDoesNotEnd(t *testing.T) {
	var calls atomic.Int32
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(ctx context.Context, p prompt) (draft, error) {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			return draft{}, ctx.Err()
		}
		return write(ctx, p)
	}})
	o := sqlite.Memory()
	e, err := engine.Config{Grace: time.Millisecond}.Open(t.Context(), o, a)
	require.NoError(t, err)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return calls.Load() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, e.Close())

	again := enginetest.Open(t, o, engine.Config{}, a)
	again.Drain()
	require.Equal(t, []string{"draft.1.1 completed 1", "review.1.1 initialized 1"}, items(t, again, id),
		"a stop is not a failed attempt")
}

func TestADueTimeOfACenturyAheadIsKept(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	a := newArticle(t, builder.Work[prompt, draft]{Timers: []activities.Timer{activities.Timeout(century)}})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	due, ok := e.NextDue()
	require.True(t, ok)
	require.Equal(t, e.Now().Add(century), due)
	e.Crash()
	e.Advance(century - time.Second)
	require.Equal(t, []string{"draft.1.1 initialized 1"}, items(t, e, id))
	e.Advance(time.Second)
	require.Equal(t, "draft.1.1 failed 1 timeout", items(t, e, id)[0])
}
