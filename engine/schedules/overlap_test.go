package schedules_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func add(t *testing.T, e *enginetest.Engine, s workflow.Scheduled) {
	t.Helper()
	_, err := schedules.Add(t.Context(), e, s)
	require.NoError(t, err)
}

// Runs that began while a schedule let them overlap count once its overlap is changed.
func TestRunsBeforeAChangeOfTheOverlapCount(t *testing.T) {
	for overlap, check := range map[schedule.Overlap]func(*testing.T, *enginetest.Engine, *schedules.Info, workitem.CaseID){
		schedule.OverlapSkip: func(t *testing.T, _ *enginetest.Engine, i *schedules.Info, _ workitem.CaseID) {
			require.Equal(t, 1, i.Skipped)
		},
		schedule.OverlapQueue: func(t *testing.T, _ *enginetest.Engine, i *schedules.Info, _ workitem.CaseID) {
			require.Len(t, i.Waiting, 1)
		},
		schedule.OverlapCancel: func(t *testing.T, e *enginetest.Engine, i *schedules.Info, old workitem.CaseID) {
			c, err := e.Case(t.Context(), old)
			require.NoError(t, err)
			require.Equal(t, state.CaseCanceled, c.State)
			require.Len(t, i.Running, 1)
		},
	} {
		t.Run(overlap.String(), func(t *testing.T) {
			f := builder.MustFunc("f", func(ctx context.Context, _ string) (string, error) { return "", step.Sleep(ctx, "nap", 10*time.Hour) })
			s := hourly("digest")
			s.Overlap = schedule.OverlapAllow
			declared := schedules.New(engine.Code)
			e := enginetest.New(t, f, declared)
			_, err := declared.Serve(t.Context(), e.Engine)
			require.NoError(t, err)
			add(t, e, builder.Schedule(s, f, ""))
			e.Advance(2*time.Hour + time.Minute)
			info, err := schedules.Find(t.Context(), e, "digest")
			require.NoError(t, err)
			require.Equal(t, at(2, 0), info.Latest.Tick)

			s.Overlap = overlap
			add(t, e, builder.Schedule(s, f, ""))
			e.Advance(time.Hour)
			old := info.Latest.Case
			info, err = schedules.Find(t.Context(), e, "digest")
			require.NoError(t, err)
			check(t, e, info, old)
		})
	}
}

// A schedule that lets its runs overlap remembers those that are active, and at most so many.
func TestOverlappingRunsAreForgotten(t *testing.T) {
	ends := true
	f := builder.MustFunc("f", func(ctx context.Context, _ string) (string, error) {
		if ends {
			return "", nil
		}
		return "", step.Sleep(ctx, "nap", 1000*time.Hour)
	})
	declared := schedules.New(engine.Code)
	e := enginetest.New(t, f, declared)
	_, err := declared.Serve(t.Context(), e.Engine)
	require.NoError(t, err)
	s := schedule.Schedule{Name: "digest", Every: time.Minute, Overlap: schedule.OverlapAllow}
	add(t, e, builder.Schedule(s, f, ""))
	for _, ends = range []bool{true, false} {
		e.Advance(50 * time.Minute)
		info, err := schedules.Find(t.Context(), e, "digest")
		require.NoError(t, err)
		require.LessOrEqual(t, len(info.Running), 20)
		require.Equal(t, info.Latest.Case, info.Running[len(info.Running)-1])
	}
	s.Overlap = schedule.OverlapSkip
	add(t, e, builder.Schedule(s, f, ""))
	info, err := schedules.Find(t.Context(), e, "digest")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(info.Running), 10)
}
