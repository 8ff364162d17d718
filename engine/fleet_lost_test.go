package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest/pgproxy"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
)

// An engine that has lost its connections, and was declared dead meanwhile, finds that out before it commits anything, and takes its jobs
// again. With the next commit it takes them from their workers, for what those have recorded may be lost: they are done again.
func TestJobsOfPartitionedEngineRunAgain(t *testing.T) {
	f := newFleet(t)
	p, dsn := pgproxy.New(t, f.dsn)
	var runs atomic.Int64
	begun := make(chan struct{}, 9)
	w, _ := function(t, "work", func(ctx context.Context, n int) (int, error) {
		if runs.Add(1) == 1 {
			begun <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return n, nil
	})
	other, _ := function(t, "other", func(_ context.Context, n int) (int, error) { return n, nil })
	e := fleetOf{t, dsn}.open(engine.Config{}, w, other)
	id := startOn(t, e, "work", "7")
	<-begun
	command, err := json.Marshal(workflow.Start("other", []byte("1")))
	require.NoError(t, err)
	_, err = postgres.Post(t.Context(), f.dsn, command) // the engine has looked for what was left before it was opened
	require.NoError(t, err)
	require.NoError(t, f.open(engine.Config{}, other).Close()) // it has the engine look at the others, and then each second as it is busy

	p.Decide(func(statement string) pgproxy.Fault { // nothing asks the engine to commit before it looks at the others
		if strings.Contains(statement, "LISTEN") {
			return pgproxy.Request
		}
		return ""
	})
	p.Refuse()
	p.Cut()
	f.sql("DELETE FROM tasq.pulses")
	f.sql("UPDATE tasq.jobs SET holder = 0")
	last := f.sql("DELETE FROM tasq.processes RETURNING id::int")
	p.Open()
	require.Eventually(t, func() bool {
		return runs.Load() > 1 || f.sql("SELECT count(*) FROM tasq.jobs WHERE holder > $1 AND state = 'running'", last) == 1
	}, time.Minute, 10*time.Millisecond)
	p.Decide(nil)
	require.Equal(t, "completed: 8", ends(t, e, startOn(t, e, "other", "8")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = e.Wait(ctx, id)
	require.NoError(t, err)
	require.EqualValues(t, 2, runs.Load())
}
