package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Engines behind a pooler that gives a session to a transaction at a time share the work as others do. They learn of one another's commits,
// and of commands that programs leave, when they look; one that is killed is replaced when its heartbeats are missed.
func TestEnginesBehindAPooler(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until a killed engine is overdue, which takes seconds; run without -short")
	}
	f := newFleet(t)
	behind := fleetOf{t, pgtest.Pooler(t, f.dsn)(f.dsn) + "&tasq_poll=200ms"}
	waits, _ := function(t, "await", func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "number") })
	began, canceled := make(chan string, 10), make(chan string, 10)
	var engines []*engine.Engine
	for _, name := range []string{"a", "b", "c"} {
		engines = append(engines, behind.open(engine.Config{Workers: 4}, booked(t), waits, blocking(t, began, canceled, name)))
	}
	id := startOn(t, engines[0], "await", `0`)
	_, err := engines[1].Do(t.Context(), workflow.Send(id, "number", 7))
	require.NoError(t, err)
	require.Equal(t, "completed: 7", ends(t, engines[2], id), "two of them learn of it by looking")

	b := f.bookings(engines...)
	b.book(30)
	b.all.Wait()
	id = startOn(t, engines[0], "block", `0`)
	require.Equal(t, "a", <-began)
	require.NoError(t, engines[0].Kill())
	died := time.Now()
	require.NotEqual(t, "a", <-began)
	t.Logf("another engine had the job %s after the death of the first", time.Since(died))
	b.engines = engines[1:]
	b.book(30)
	command, err := json.Marshal(workflow.Start("transfer", []byte("60")))
	require.NoError(t, err)
	b.next++
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer, err := postgres.Post(ctx, behind.dsn, command)
	require.NoError(t, err)
	result, err := engine.RemoteAnswer(answer)
	require.NoError(t, err)
	b.all.Wait()
	b.ids[60] = result.Case
	_, err = engines[1].Do(t.Context(), workflow.Cancel(id, workitem.Failf("done", "")))
	require.NoError(t, err)
	require.Equal(t, "canceled: done", ends(t, engines[1], id))
	b.check(f)
}
