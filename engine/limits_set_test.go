package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
)

// A limit is changed while steps hold it and wait for it: 0 has them wait, and more lets as many begin at once.
func TestALimitOfStepsIsChanged(t *testing.T) {
	var c callLog
	db := limit.Resource("db", 1)
	f := builder.MustFunc("f", asking(&c, time.Hour, step.Takes(db, 0)), builder.Limits(builder.TakenBySteps(db)))
	inBubble(t, engine.Config{Workers: 10}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		runs := startAll(t, e, f, numbers(6)...)
		change := func(after time.Duration, n int64) {
			<-time.After(time.Until(begin.Add(after)))
			_, err := e.Do(t.Context(), workflow.SetLimit("db", n))
			require.NoError(t, err)
		}
		change(10*time.Minute, 3)
		change(30*time.Minute, 0)
		<-time.After(90 * time.Minute)
		says(t, e, runs[5].ID, "step ask of run.1.1 waits for 1 of slots db, which is paused")
		change(3*time.Hour, 2)
		endAll(t, e, runs)
		var at []time.Duration
		for _, began := range c.at {
			at = append(at, began.Sub(begin).Round(time.Minute))
		}
		require.Equal(t, []time.Duration{0, 10 * time.Minute, 10 * time.Minute, 3 * time.Hour, 3 * time.Hour, 4 * time.Hour}, at)
	}, f)
}

// A job whose queue is paused while it waits for a limit lets the others pass that wait for it.
func TestAJobOfAPausedQueueHoldsUpNoLine(t *testing.T) {
	var c callLog
	one := builder.Limits(builder.Takes(limit.Resource("one", 1), 0))
	slow := builder.MustFunc("slow", busyFor(&c, time.Hour), one, builder.OnQueue("slow"))
	other := builder.MustFunc("other", busyFor(&c, time.Hour), one)
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, slow, numbers(3)...)
		others := startAll(t, e, other, numbers(2)...)
		_, err := e.Do(t.Context(), workflow.PauseQueue("slow"))
		require.NoError(t, err)
		<-time.After(3*time.Hour + time.Minute)
		require.Equal(t, 0, c.now(), "the first, and the two others, have had their turn")
		require.Len(t, c.at, 3)
		endAll(t, e, others)
		_, err = e.Do(t.Context(), workflow.ResumeQueue("slow"))
		require.NoError(t, err)
		endAll(t, e, runs)
		require.Equal(t, 1, c.highest())
	}, slow, other)
}
