package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// What ends an item as a worker is about to begin it stands, as it does when a person starts it: the function is not called, and the
// case continues.
func TestAnItemThatEndsAsItStarts(t *testing.T) {
	stale := activities.ItemHooks{OnStarted: func(_ context.Context, it *activities.Item) error {
		return it.Cancel(workitem.Failf("stale", "it is wanted no longer"))
	}}
	none := workitem.NewPolicy("none", func(o workitem.Outcome) (workitem.Verdict, error) {
		return workitem.FailTask, nil
	})
	call := func(context.Context, int) (int, error) { panic("it has ended") }
	batch := builder.Batched[int, int]{Most: 2, Run: func(context.Context, []int) ([]builder.Outcome[int], error) { panic("all have ended") }}
	for name, c := range map[string]struct {
		work builder.Work[int, int]
		want state.CaseState
	}{
		"a hook":               {builder.Work[int, int]{Run: call, Item: stale}, state.CaseCompleted},
		"a hook, of a batch":   {builder.Work[int, int]{Batch: batch, Item: stale}, state.CaseCompleted},
		"a policy":             {builder.Work[int, int]{Run: call, Policy: none}, state.CaseFailed},
		"a policy, of a batch": {builder.Work[int, int]{Batch: batch, Policy: none}, state.CaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder.New[int]("stale")
			c.work.Input = builder.CaseInput(b)
			b.Path(b.Start(), builder.Task(b, "work", c.work), b.End())
			w, err := b.Build()
			require.NoError(t, err)
			e := enginetest.New(t, w)
			for _, opts := range [][]workflow.Option{nil, {workflow.After(time.Minute)}} { // begun by the start's own transaction, and by one of its own
				id, err := w.Start(t.Context(), e, 1, opts...)
				require.NoError(t, err)
				e.Advance(time.Hour)
				ended, err := e.Case(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, c.want, ended.State)
			}
			require.Empty(t, e.Overdue())
		})
	}
}
