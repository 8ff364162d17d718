package why_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A process that only reads says as the engine does until when a function waits for its hours, since they are in the definition that
// the database has. What waits so is neither late nor stranded.
func TestHoursAreKnownToThoseWhoRead(t *testing.T) {
	hours := schedule.MustParseWindow("08:00-18:00", "Europe/Berlin")
	b := builder.New[any]("desk")
	called := 0
	remind := builder.Job(b, "remind", func(context.Context, string) error { called++; return nil }, builder.JobOptions{Hours: hours})
	task := builder.Task(b, "check", builder.Work[any, any]{OnEnabled: func(_ context.Context, a *activities.Activation) error {
		_, err := remind.After(a, 0, "x")
		return err
	}})
	b.Path(b.Start(), task, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id := start(t, e, w)
	e.Drain()
	e.Advance(3 * time.Hour)
	var read *why.Answer
	closed := make(map[workitem.JobID]bool)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		if read, err = why.Read(t.Context(), r, id, e.Now(), why.Here{}); err != nil {
			return err
		}
		jobs, err := r.Jobs(t.Context(), store.JobFilter{States: []state.JobState{state.JobPending}, Due: e.Now()})
		if err == nil {
			closed, err = why.NotLate(t.Context(), r, jobs, e.Now())
		}
		return err
	}))
	for _, answer := range []*why.Answer{read, ask(t, e, id)} {
		wait := answer.Of("check")[1]
		require.Equal(t, why.Hours, wait.Blocked)
		require.Equal(t, hours, wait.Hours)
		require.Equal(t, "2030-01-01 07:00", wait.Until.UTC().Format("2006-01-02 15:04"))
		require.Contains(t, wait.Text, "function remind of check waits until 08:00 Europe/Berlin, when its hours begin (08:00-18:00), since 3h")
		require.Equal(t, map[workitem.JobID]bool{wait.Job: true}, closed)
	}
	for s, err := range why.Stranded(t.Context(), e, why.Search{Here: e.Here(), Now: e.Now()}) {
		require.NoError(t, err)
		t.Error(s)
	}
	e.Advance(4*time.Hour - time.Minute)
	require.Zero(t, called)
	e.Advance(time.Minute)
	require.Equal(t, 1, called)
}
