package bulk_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A filter selects the cases on which the action can be executed, and no bulk action; a text in payloads restricts it.
func TestCasesAreSelectedForAnAction(t *testing.T) {
	o, repairs := newOrders(t, workitem.Incident(workitem.Default())), bulk.New(engine.Code)
	e := enginetest.New(t, o, repairs)
	ids := startOrders(t, e, o, 3)
	do := func(c workflow.Command) {
		t.Helper()
		_, err := e.Do(t.Context(), c)
		require.NoError(t, err)
	}
	do(workflow.Suspend(ids[0]))
	do(workflow.Cancel(ids[1], nil))
	do(workflow.PauseQueue(bulk.Name))
	_, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindSuspend}, []string{ids[2].String()})
	require.NoError(t, err)
	find := func(kind workflow.Kind, f store.CaseFilter, s store.Search) []string {
		t.Helper()
		targets, err := bulk.Cases(t.Context(), e, kind, f, s)
		require.NoError(t, err)
		return targets
	}
	first, third := ids[0].String(), ids[2].String()
	require.Equal(t, []string{third}, find(workflow.KindSuspend, store.CaseFilter{}, store.Search{}))
	require.Equal(t, []string{first, third}, find(workflow.KindCancel, store.CaseFilter{}, store.Search{}))
	require.Equal(t, []string{first}, find(workflow.KindCancel, store.CaseFilter{Suspended: true}, store.Search{}))
	require.Equal(t, []string{first}, find(workflow.KindResume, store.CaseFilter{Suspended: true}, store.Search{}))
	require.Empty(t, find(workflow.KindResume, store.CaseFilter{}, store.Search{}))
	require.Empty(t, find(workflow.KindCancel, store.CaseFilter{}, store.Search{Payload: "Ada"}))

	_, err = bulk.Cases(t.Context(), e, workflow.KindCancel, store.CaseFilter{}, store.Search{Payload: "Ada", Rows: 1})
	_, cut := errors.AsType[*store.CutError](err)
	require.True(t, cut, err)
	_, err = bulk.Cases(t.Context(), e, workflow.KindRetry, store.CaseFilter{}, store.Search{})
	require.ErrorContains(t, err, `no targets of "retry"`)
}
