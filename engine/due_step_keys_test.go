package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The same, of limits with keys, pools of keys, keys of queues, hours and busy workers, on both stores, and as the database alone knows it.
func TestWhyNamesTheKeyThatAFunctionWaitsForAfterItsSleep(t *testing.T) {
	for name, in := range map[string]func(*testing.T) store.Opener{
		"sqlite":   func(*testing.T) store.Opener { return sqlite.Memory() },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(prepared.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sleep := func(d time.Duration) func(context.Context, string) (string, error) {
				return func(ctx context.Context, s string) (string, error) { return s, step.Sleep(ctx, "nap", d) }
			}
			nap, hour := sleep(time.Minute), sleep(time.Hour)
			customer := builder.TakesBy(limit.Resource("customer", 1), 1, tenant)
			limited := builder.MustFunc("limited", nap, builder.Limits(customer))
			holder := builder.MustFunc("holder", hour, builder.Holds(customer))
			pooled := builder.MustFunc("pooled", nap, builder.Limits(builder.Takes(limit.Calls(1, time.Hour), 1).AnyOf("key-1", "key-2")))
			fair := builder.MustFunc("fair", nap, builder.FairBy(tenant), builder.OnQueue("mail"))
			early := builder.MustFunc("early", nap, builder.Hours(schedule.MustParseWindow("00:00-00:01", "UTC")))
			alone := builder.MustFunc("alone", nap, builder.OnQueue("one"))
			called, end := make(chan struct{}), make(chan struct{})
			defer close(end)
			busy := builder.MustFunc("busy", func(context.Context, string) (string, error) {
				close(called)
				<-end
				return "", nil
			}, builder.OnQueue("one"))
			e := enginetest.Open(t, in(t), engine.Config{Queues: map[string]int{"one": 1}}, limited, holder, pooled, fair, early, alone, busy)
			start := func(f *builder.FuncRef[string, string], input string) workitem.CaseID {
				r, err := f.Run(t.Context(), e, input)
				require.NoError(t, err)
				return r.ID
			}
			do := func(c workflow.Command) { require.NoError(t, enginetest.Do(t.Context(), e, c)) }
			held, zero, any := start(limited, "a"), start(limited, "e"), start(pooled, "")
			paused, closed, crowded := start(fair, "a"), start(early, ""), start(alone, "")
			e.Drain()
			start(holder, "a")
			start(pooled, "")
			do(workflow.SetLimitOf("customer", "e", 0))
			do(workflow.PauseKey("mail", "a"))
			e.Drain()
			start(busy, "")
			<-called
			e.Clock().Set(e.Now().Add(time.Minute))
			says(t, e, held, "step nap of run.1.1 waits for 1 of slots customer, not enough are free (of a), since 0s")
			e.Clock().Set(e.Now().Add(4 * time.Minute))
			for id, want := range map[workitem.CaseID][2]string{
				held: {"waits for 1 of slots customer, not enough are free (of a), since 4m", "and room for 1 of slots customer, by a key of its input, since 4m"},
				zero: {"waits for 1 of slots customer, which is paused (of e), since 4m", "and room for 1 of slots customer, by a key of its input, since 4m"},
				any: {"waits for 1 of rate calls, free in 55m0s (of key-1 or key-2; key-1 is the first), since 4m",
					"and room for 1 of rate calls (of key-1 or key-2), since 4m"},
				paused: {"waits for a worker of queue mail, since 4m; key a of queue mail is paused for 5m",
					"waits for a worker of queue mail (key a of the queue is paused; only the program that runs the job knows"},
				closed:  {"waits until Wed 2030-01-02 00:00 UTC, when its hours begin", "waits until Wed 2030-01-02 00:00 UTC, when its hours begin"},
				crowded: {"waits for a worker of queue one, since 4m; all workers of queue one are busy", "waits for a worker of queue one, since 4m"},
			} {
				says(t, e, id, "step nap of run.1.1 "+want[0])
				require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
					answer, err := why.Read(t.Context(), r, id, e.Now(), why.Here{})
					require.Contains(t, answer.String(), want[1])
					return err
				}))
			}
		})
	}
}
