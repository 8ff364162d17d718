package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/postgres"
)

// A worker starts before its claim is committed, and another engine claims the job first, as after the engine was declared dead. Both claims have
// the same fence, since both follow the same one: nothing that the worker without a claim records may count as the other one's.
func TestAClaimThatAnotherEngineMadeFirst(t *testing.T) {
	f := newFleet(t)
	f.sql("CREATE TABLE effects (engine text)")
	insert := func(name string) func(context.Context, domain.DB) (int, error) {
		return func(ctx context.Context, db domain.DB) (int, error) {
			_, err := db.ExecContext(ctx, "INSERT INTO effects VALUES ($1)", name)
			return 1, err
		}
	}
	begun, first, second, release := make(chan struct{}, 9), make(chan struct{}), make(chan struct{}, 9), make(chan struct{})
	work, _ := function(t, "work", func(ctx context.Context, n int) (int, error) {
		if n == 0 { // it has the only worker while the other job is stored
			<-first
			return 0, nil
		}
		begun <- struct{}{}
		return step.Tx(ctx, "save", insert("first"))
	})
	same, _ := function(t, "work", func(ctx context.Context, _ int) (int, error) {
		second <- struct{}{}
		<-release
		return step.Tx(ctx, "save", insert("second"))
	})
	var overtook atomic.Bool
	overtaken := func() error { // before a commit of the first engine: the next one behind the end of its first run has the claim
		if overtook.Load() || f.sql("SELECT count(*) FROM tasq.cases WHERE state = 'completed'") == 0 {
			return nil
		}
		select {
		case <-begun:
		case <-time.After(10 * time.Second): // this one only read
			return nil
		}
		overtook.Store(true)
		for taken := false; !taken; { // the first engine may take it, too, by a heartbeat
			f.sql("WITH free AS (UPDATE tasq.jobs SET holder = 0 WHERE state = 'pending') " +
				"SELECT 1 FROM tasq.processes, pg_notify('tasq', id || ':f:') WHERE id = (SELECT min(id) FROM tasq.processes)")
			select {
			case <-second:
				taken = true
			case <-time.After(time.Second):
			}
		}
		f.until("SELECT count(*) FROM tasq.jobs WHERE state = 'running' AND fence = 1", exactly(1))
		return nil
	}
	e, err := engine.Config{Workers: 1}.Open(t.Context(), &storehook.Opener{Opener: postgres.Open(f.dsn), Fleet: true, Commit: overtaken}, work)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	waits := startOn(t, e, "work", "0")
	id := startOn(t, e, "work", "1")
	other := f.open(engine.Config{Workers: 1}, same)
	close(first)
	require.Equal(t, "completed: 0", ends(t, e, waits))
	require.Equal(t, "completed: 0", ends(t, e, startOn(t, e, "work", "0"))) // its worker is free again
	close(release)
	require.Equal(t, "completed: 1", ends(t, other, id))
	require.Equal(t, 1, f.sql("SELECT count(*) FROM effects WHERE engine = 'second'"))
	require.Equal(t, 1, f.sql("SELECT count(*) FROM effects"))
	require.Equal(t, 0, f.sql("SELECT count(*) FROM tasq.work_items WHERE state = 'failed'"))
}
