package bulk_test

import (
	"context"
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

// orders is a workflow whose supplier is down at first.
type orders struct {
	*builder.Workflow[int]
	down atomic.Bool
}

func newOrders(t *testing.T, p workitem.Policy) *orders {
	t.Helper()
	o := new(orders)
	o.down.Store(true)
	b := builder.New[int]("order")
	ask := builder.Task(b, "ask", builder.Work[int, int]{Input: builder.CaseInput(b), Policy: p,
		Run: func(_ context.Context, n int) (int, error) {
			if o.down.Load() {
				return 0, &workitem.Failure{Code: "supplier-down"}
			}
			return n, nil
		}})
	b.Path(b.Start(), ask, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	o.Workflow = w
	return o
}

func startOrders(t *testing.T, e *enginetest.Engine, o *orders, n int) (ids []workitem.CaseID) {
	t.Helper()
	for i := range n {
		id, err := o.Start(t.Context(), e, i)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	e.Drain()
	return ids
}

func TestIncidentsThatAreAlikeAreRetriedTogether(t *testing.T) {
	o, repairs := newOrders(t, workitem.Incident(workitem.Default())), bulk.New(engine.Code)
	e := enginetest.New(t, o, repairs)
	repairs.Serve(e)
	ids := startOrders(t, e, o, 40)
	targets, err := bulk.Open(t.Context(), e, store.IncidentFilter{Code: new("supplier-down")})
	require.NoError(t, err)
	require.Len(t, targets, 40)
	none, err := bulk.Open(t.Context(), e, store.IncidentFilter{Code: new("no-funds")})
	require.NoError(t, err)
	require.Empty(t, none)

	// One of them is skipped meanwhile, so that its retry is refused.
	first, err := workitem.ParseID(targets[0])
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Skip(first, []byte("7"))))
	o.down.Store(false)
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRetry, Reason: "it is back", Actor: "ann"}, targets)
	require.NoError(t, err)
	e.Drain()
	result, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 39, result.Done)
	require.Len(t, result.Refused, 1)
	require.Equal(t, targets[0], result.Refused[0].Target)
	require.Equal(t, "not-failed", result.Refused[0].Code)
	i, err := bulk.InfoOf(t.Context(), e, run.ID)
	require.NoError(t, err)
	require.Equal(t, &bulk.Info{ID: run.ID, Kind: workflow.KindRetry, State: "completed", Actor: "ann", Reason: "it is back", Started: i.Started, Ended: i.Ended,
		Targets: 40, Done: 39, Refused: 1, Refusals: result.Refused}, i)
	for _, id := range ids {
		c, err := e.Case(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, state.CaseCompleted, c.State)
	}
}

// A program need not call Serve. If it opens two engines with the same workflow, each executes its own actions.
func TestAnActionIsExecutedByTheEngineThatRunsIt(t *testing.T) {
	o, repairs := newOrders(t, workitem.Policy{}), bulk.New(engine.Code)
	first, second := enginetest.New(t, o, repairs), enginetest.New(t, o, repairs)
	for _, e := range []*enginetest.Engine{first, second} {
		startOrders(t, e, o, 2)
	}
	o.down.Store(false)
	for _, e := range []*enginetest.Engine{first, second} {
		targets, err := bulk.Failed(t.Context(), e, store.CaseFilter{Workflow: "order"}, "supplier-down")
		require.NoError(t, err)
		run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindResume}, targets)
		require.NoError(t, err)
		e.Drain()
		i, err := bulk.InfoOf(t.Context(), e, run.ID)
		require.NoError(t, err)
		require.Equal(t, "completed", i.State)
		require.Equal(t, 2, i.Done)
	}
}

// An action that no engine runs fails with what to do.
func TestAnActionOutsideOfAnEngineFails(t *testing.T) {
	d := bulk.New(engine.Code).Untyped()
	run := d.Tasks[0].Run
	require.NotNil(t, run)
	_, err := run(t.Context(), &activities.Work{})
	require.ErrorContains(t, err, "open an engine with it")
}

// An action that is cut off continues where it was: each target is repaired once.
func TestAnActionGoesOnAfterACrash(t *testing.T) {
	o := newOrders(t, workitem.Policy{})
	repairs := bulk.New(engine.Code)
	e := enginetest.New(t, o, repairs)
	ids := startOrders(t, e, o, 20)
	targets, err := bulk.Failed(t.Context(), e, store.CaseFilter{Workflow: "order"}, "supplier-down")
	require.NoError(t, err)
	require.Len(t, targets, 20)
	o.down.Store(false)

	// The engine dies as the seventh command is sent.
	sent := 0
	stop := make(chan struct{})
	repairs.Serve(doer(func(ctx context.Context, c workflow.Command) (workflow.Result, error) {
		if sent++; sent == 7 {
			close(stop)
			<-ctx.Done()
			return workflow.Result{}, ctx.Err()
		}
		return e.Do(ctx, c)
	}))
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindResume}, targets)
	require.NoError(t, err)
	<-stop
	repairs = bulk.New(engine.Code)
	looked := make(chan struct{}) // the next attempt waits for the look at what the first one did
	repairs.Serve(doer(func(ctx context.Context, c workflow.Command) (workflow.Result, error) {
		<-looked
		return e.Do(ctx, c)
	}))
	e.Crash(o, repairs)
	i, err := bulk.InfoOf(t.Context(), e, run.ID)
	require.NoError(t, err)
	require.Equal(t, "started", i.State)
	require.Equal(t, 20, i.Targets)
	require.Equal(t, 6, i.Done)
	close(looked)
	e.Advance(time.Hour)
	result, err := repairs.Of(run.ID).Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, bulk.Result{Done: 20}, result)
	for _, id := range ids {
		c, err := e.Case(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, state.CaseCompleted, c.State)
		require.Equal(t, []string{"ask.1.1 failed", "ask.1.2 completed"}, e.States(id), "it was resumed once")
	}
}

type doer func(context.Context, workflow.Command) (workflow.Result, error)

func (d doer) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) { return d(ctx, c) }

func TestAnActionThatCannotBeIsRefused(t *testing.T) {
	repairs := bulk.New(engine.Code)
	e := enginetest.New(t, repairs)
	for _, c := range []struct {
		kind    workflow.Kind
		targets []string
	}{{workflow.KindRetry, nil}, {workflow.KindRetry, []string{"x"}}, {workflow.KindStart, []string{workitem.ID{1}.String()}}} {
		_, err := repairs.Start(t.Context(), e, bulk.Action{Kind: c.kind}, c.targets)
		require.Error(t, err)
	}
}

// The cases of a workflow are suspended and resumed together. The action is not one of them, though it continues.
func TestTheCasesOfAWorkflowAreSuspendedTogether(t *testing.T) {
	o, repairs := newOrders(t, workitem.Incident(workitem.Default())), bulk.New(engine.Code)
	e := enginetest.New(t, o, repairs)
	repairs.Serve(e)
	startOrders(t, e, o, 5)
	act := func(kind workflow.Kind, suspended bool) bulk.Result {
		t.Helper()
		targets, err := bulk.Live(t.Context(), e, store.CaseFilter{}, suspended)
		require.NoError(t, err)
		run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: kind, Reason: "the supplier is down"}, targets)
		require.NoError(t, err)
		again, err := bulk.Live(t.Context(), e, store.CaseFilter{Workflow: bulk.Name}, false)
		require.NoError(t, err)
		require.Empty(t, again)
		e.Drain()
		result, err := run.Result(t.Context(), e)
		require.NoError(t, err)
		return result
	}
	require.Equal(t, bulk.Result{Done: 5}, act(workflow.KindSuspend, false))
	held, err := bulk.Live(t.Context(), e, store.CaseFilter{Workflow: "order"}, true)
	require.NoError(t, err)
	require.Len(t, held, 5)
	require.Equal(t, bulk.Result{Done: 5}, act(workflow.KindResume, true))
	held, err = bulk.Live(t.Context(), e, store.CaseFilter{}, true)
	require.NoError(t, err)
	require.Empty(t, held)
}
