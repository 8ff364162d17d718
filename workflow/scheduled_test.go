package workflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
)

// A CatchUpMost that has no effect, or that is too large, is an error where the schedule is declared.
func TestCatchUpMostOfASchedule(t *testing.T) {
	for _, c := range []struct {
		catchUp schedule.CatchUp
		most    int
		want    string
	}{
		{schedule.CatchUpNone, 0, ""},
		{schedule.CatchUpLast, 0, ""},
		{schedule.CatchUpAll, 0, ""},
		{schedule.CatchUpAll, 1, ""},
		{schedule.CatchUpAll, 1000, ""},
		{schedule.CatchUpNone, 3, `invalid schedule "poll": CatchUpMost is 3, and CatchUp is none: `},
		{schedule.CatchUpLast, 3, `invalid schedule "poll": CatchUpMost is 3, and CatchUp is last: `},
		{schedule.CatchUpAll, 1001, `invalid schedule "poll": CatchUpMost is 1001: use at most 1000`},
	} {
		s := workflow.Scheduled{Start: workflow.Start("digest", nil),
			Schedule: schedule.Schedule{Name: "poll", Every: time.Hour, CatchUp: c.catchUp, CatchUpMost: c.most}}
		_, err := s.Schedule.Compile()
		require.NoError(t, err, "one that is stored goes on")
		if err = s.Check(); c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, schedule.ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
}
