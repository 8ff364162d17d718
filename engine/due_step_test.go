package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
)

// A function whose sleep is over needs a worker again, and what keeps it from one is named as it is before its start.
func TestWhyNamesWhatKeepsAFunctionAfterItsSleep(t *testing.T) {
	nap := func(ctx context.Context, _ int) (int, error) { return 0, step.Sleep(ctx, "nap", time.Minute) }
	var log callLog
	takes := builder.Limits(builder.Takes(limit.Resource("db", 1), 0))
	limited := builder.MustFunc("limited", nap, takes)
	holder := builder.MustFunc("holder", busyFor(&log, time.Hour), takes)
	paused := builder.MustFunc("paused", nap, builder.OnQueue("mail"))
	alone := builder.MustFunc("alone", nap, builder.OnQueue("one"))
	busy := builder.MustFunc("busy", busyFor(&log, time.Hour), builder.OnQueue("one"))
	inBubble(t, engine.Config{Queues: map[string]int{"one": 1}}, func(t *testing.T, e *engine.Engine) {
		first, second, third := startAll(t, e, limited, 1), startAll(t, e, paused, 1), startAll(t, e, alone, 1)
		<-time.After(time.Second) // they sleep now
		ends := append(startAll(t, e, holder, 1), startAll(t, e, busy, 1)...)
		_, err := e.Do(t.Context(), workflow.PauseQueue("mail"))
		require.NoError(t, err)
		waits := func(run builder.Run[int]) why.Wait {
			answer, err := e.Why(t.Context(), run.ID)
			require.NoError(t, err)
			require.Len(t, answer.Waits, 1)
			return answer.Waits[0]
		}
		require.Contains(t, waits(first[0]).Text, "step nap of run.1.1 goes on in 59s")

		<-time.After(5 * time.Minute)
		require.Contains(t, waits(first[0]).Text, "step nap of run.1.1 waits for 1 of slots db, ")
		require.Contains(t, waits(second[0]).Text, "step nap of run.1.1 waits for a worker of queue mail, since 4m")
		require.Contains(t, waits(second[0]).Text, "; queue mail is paused for 5m")
		require.Contains(t, waits(third[0]).Text, "; all workers of queue one are busy")

		_, err = e.Do(t.Context(), workflow.ResumeQueue("mail"))
		require.NoError(t, err)
		endAll(t, e, append(append(append(ends, first...), second...), third...))
	}, limited, holder, paused, alone, busy)
}
