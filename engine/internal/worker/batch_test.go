package worker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A function that passes its context on to a client gives it a deadline: that by which the last of its runs is given
// up.
func TestABatchHasTheLastDeadlineOfItsRuns(t *testing.T) {
	first := time.Now().Add(time.Hour)
	last := first.Add(time.Minute)
	for _, c := range []struct {
		name      string
		deadlines []time.Time // of its runs; zero for none
		want      time.Time
	}{
		{"one run", []time.Time{first}, first},
		{"the last comes first", []time.Time{last, first}, last},
		{"the last comes last", []time.Time{first, last}, last},
		{"a run without a timeout", []time.Time{first, {}}, time.Time{}},
		{"no timeouts", []time.Time{{}, {}}, time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got time.Time
			spec := &workflow.Batch{Run: func(ctx context.Context, works []*activities.Work) []workflow.Done {
				got, _ = ctx.Deadline()
				return make([]workflow.Done, len(works))
			}}
			var members []*member
			for _, deadline := range c.deadlines {
				ctx := t.Context()
				if !deadline.IsZero() {
					var cancel context.CancelFunc
					ctx, cancel = context.WithDeadline(ctx, deadline)
					defer cancel()
				}
				members = append(members, &member{ctx: ctx, w: &activities.Work{}, spec: spec})
			}
			alone(t.Context(), workitem.JobID{}).call(members)
			require.Equal(t, c.want, got)
		})
	}
}
