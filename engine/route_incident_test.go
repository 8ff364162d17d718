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
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A route that fails, fails the work whose result it refuses: it is retried, is an incident where the policy of its task says so, and a
// person retries it. What the work has done in steps is not repeated.
func TestARouteThatFailsIsAnIncident(t *testing.T) {
	t.Parallel()
	var charged, runs atomic.Int32
	broken := true
	b := builder.New[int]("routed")
	pick := builder.Task(b, "pick", builder.Work[int, int]{Input: builder.CaseInput(b), Split: builder.Xor,
		Policy: workitem.Incident(workitem.Default()), OnWorkItemStateChanged: retrying(retry.Constant(2, time.Minute)),
		Run: func(ctx context.Context, n int) (int, error) {
			runs.Add(1)
			_, err := step.Do(ctx, "charge", func(context.Context) (int32, error) { return charged.Add(1), nil })
			return n, err
		},
		Route: func(context.Context, *activities.Activation) ([]string, error) {
			if broken {
				return nil, errors.New("the rate table is empty")
			}
			return []string{"right"}, nil
		}})
	left := builder.Task(b, "left", builder.Work[int, int]{Input: builder.CaseInput(b)})
	right := builder.Task(b, "right", builder.Work[int, int]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), pick, left, b.End())
	b.Path(pick, right, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, 7)
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.Equal(t, []string{"pick.1.1 failed", "pick.1.2 failed"}, e.States(id))
	require.Equal(t, state.CaseStarted, caseOf(t, e, id).State)
	var found []*store.Incident
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{Kind: state.IncidentAttempts}) {
		require.NoError(t, err)
		found = append(found, i)
	}
	require.Len(t, found, 1)
	require.Equal(t, workitem.CodeInvalid, found[0].Failure.Code)
	require.Contains(t, found[0].Failure.Message, "route of routed/pick")
	require.Contains(t, found[0].Failure.Message, "the rate table is empty")

	broken = false
	require.NoError(t, pick.Retry(t.Context(), e, found[0].Item))
	e.Drain()
	require.Equal(t, workitem.Initialized, e.Item(id, "right.1.1").State)
	require.EqualValues(t, 3, runs.Load())
	require.EqualValues(t, 1, charged.Load())
}
