package bulk_test

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
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Timers that gave up are fired again by one action, those that the filter selects; work items are no targets of it.
func TestTimersThatGaveUpAreFiredTogether(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	fired := 0
	b := builder.New[any]("timed")
	b.Path(b.Start(), builder.Task(b, "wait", builder.Work[any, any]{Timers: []activities.Timer{
		{Name: "remind", After: time.Minute, Task: func(context.Context, *activities.Activation) error {
			if down.Load() {
				return errors.New("no connection")
			}
			fired++
			return nil
		}}}}), b.End())
	w, repairs := b.MustBuild(), bulk.New(engine.Code)
	e := enginetest.New(t, w, repairs)
	repairs.Serve(e)
	for range 5 {
		_, err := w.Start(t.Context(), e, nil)
		require.NoError(t, err)
	}
	e.Advance(24 * time.Hour)
	handlers, err := bulk.OpenJobs(t.Context(), e, store.IncidentFilter{Kind: state.IncidentHandler})
	require.NoError(t, err)
	require.Empty(t, handlers)
	targets, err := bulk.OpenJobs(t.Context(), e, store.IncidentFilter{Kind: state.IncidentTimer})
	require.NoError(t, err)
	require.Len(t, targets, 5)
	down.Store(false)
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRetryIncident, Reason: "it is back", Actor: "ann"}, targets)
	require.NoError(t, err)
	e.Drain()
	result, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, bulk.Result{Done: 5}, result)
	require.Equal(t, 5, fired)
	targets, err = bulk.OpenJobs(t.Context(), e, store.IncidentFilter{})
	require.NoError(t, err)
	require.Empty(t, targets)
}

// The failed child cases that a policy holds are resumed by one action, each as by a resume of its own.
func TestChildCasesThatAPolicyHoldsAreResumedTogether(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	b := builder.New[any]("child")
	b.Path(b.Start(), builder.Task(b, "pay", builder.Work[any, any]{Run: func(context.Context, any) (any, error) {
		if down.Load() {
			return nil, workitem.Failf("no-funds", "it is empty")
		}
		return nil, nil
	}}), b.End())
	child := b.MustBuild()
	p := builder.New[any]("parent")
	p.Path(p.Start(), builder.Composite(p, "kids", child, builder.Cases[any]{Policy: workitem.Incident(workitem.Default()),
		Items: func(context.Context, *activities.Activation) ([]any, error) { return []any{1, 2}, nil }}), p.End())
	parent, repairs := p.MustBuild(), bulk.New(engine.Code)
	e := enginetest.New(t, parent, repairs)
	repairs.Serve(e)
	var runs []workitem.CaseID
	for range 2 {
		id, err := parent.Start(t.Context(), e, nil)
		require.NoError(t, err)
		runs = append(runs, id)
	}
	e.Drain()
	targets, err := bulk.OpenJobs(t.Context(), e, store.IncidentFilter{Kind: state.IncidentCase})
	require.NoError(t, err)
	require.Len(t, targets, 4)
	down.Store(false)
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRetryIncident, Reason: "it is filled", Actor: "ann"}, targets)
	require.NoError(t, err)
	e.Drain()
	result, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, bulk.Result{Done: 4}, result)
	for _, id := range runs {
		c, err := e.Case(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, state.CaseCompleted, c.State)
	}
	targets, err = bulk.OpenJobs(t.Context(), e, store.IncidentFilter{})
	require.NoError(t, err)
	require.Empty(t, targets)
}
