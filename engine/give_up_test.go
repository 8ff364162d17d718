package engine_test

import (
	"context"
	"testing"

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

// holding returns a workflow whose policy holds its task when one of its child cases has failed, as each does, and one of a scheduled function
// that fails.
func holding() (parent, calls *builder.Workflow[any]) {
	refuse := func(context.Context, any) (any, error) {
		return nil, &workitem.Failure{Code: "no-funds", Message: "it is empty"}
	}
	c := builder.New[any]("child")
	c.Path(c.Start(), builder.Task(c, "pay", builder.Work[any, any]{Run: refuse}), c.End())
	p := builder.New[any]("parent")
	p.Path(p.Start(), builder.Composite(p, "kids", c.MustBuild(), builder.Cases[any]{Policy: workitem.Incident(workitem.Default()),
		Items: func(context.Context, *activities.Activation) ([]any, error) { return []any{1, 2}, nil }}), p.End())
	f := builder.New[any]("calls")
	mail := builder.Job(f, "mail", func(context.Context, string) error { return workitem.Failf("smtp", "it is down") }, builder.JobOptions{})
	f.Path(f.Start(), builder.Task(f, "wait", builder.Work[any, any]{OnEnabled: func(_ context.Context, a *activities.Activation) error {
		_, err := mail.After(a, 0, "hello")
		return err
	}}), f.End())
	return p.MustBuild(), f.MustBuild()
}

// A task that holds a failed child case is failed by one command, and its case with it, with the failure of the child. What else it held ends.
func TestAHeldChildCaseIsGivenUp(t *testing.T) {
	t.Parallel()
	parent, calls := holding()
	repairs := bulk.New(engine.Code)
	e := enginetest.New(t, parent, calls, repairs)
	repairs.Serve(e)
	var ids []workitem.CaseID
	for range 3 {
		id, err := parent.Start(t.Context(), e, nil)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	_, err := calls.Start(t.Context(), e, nil)
	require.NoError(t, err)
	e.Drain()
	held := func() (all []*store.Incident) {
		for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{Kind: state.IncidentCase}) {
			require.NoError(t, err)
			all = append(all, i)
		}
		return all
	}
	open := held()
	require.Len(t, open, 6, "two of each case")
	one := open[0]
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.GiveUpIncident(one.ID, workflow.By("ann"), workflow.Because("too late"))))
	c := caseOf(t, e, one.Case)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, "no-funds", c.Failure.Code)
	require.Len(t, held(), 4, "both of the case have ended")
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.GiveUpIncident(one.ID)), engine.ErrNotFound)

	others, err := bulk.OpenJobs(t.Context(), e, store.IncidentFilter{Kind: state.IncidentFunction})
	require.NoError(t, err)
	require.Len(t, others, 1)
	mail, err := workitem.ParseID(others[0])
	require.NoError(t, err)
	err = enginetest.Do(t.Context(), e, workflow.GiveUpIncident(workitem.JobID(mail)))
	require.ErrorIs(t, err, workflow.ErrBadCommand, "a function has no task to fail")

	targets, err := bulk.OpenJobs(t.Context(), e, store.IncidentFilter{Kind: state.IncidentCase})
	require.NoError(t, err)
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindGiveUpIncident, Reason: "too late", Actor: "ann"}, targets)
	require.NoError(t, err)
	e.Drain()
	result, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 2, result.Done)
	require.Len(t, result.Refused, 2, "the others ended with the task")
	require.Empty(t, held())
	for _, id := range ids {
		require.Equal(t, state.CaseFailed, caseOf(t, e, id).State)
	}
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(ids[0], nil)), "like every failed case")
	e.Drain()
	require.Len(t, held(), 2)
}
