package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
)

// Engines that restart the same cases at once restart each of them once, if they restart only what was not restarted.
func TestCasesAreRestartedOnceInAFleet(t *testing.T) {
	f := newFleet(t)
	w, _ := function(t, "same", func(_ context.Context, n int) (int, error) { return n, nil })
	engines := []*engine.Engine{f.open(engine.Config{}, w), f.open(engine.Config{}, w)}
	for range 10 {
		id := startOn(t, engines[0], "same", `1`)
		require.Equal(t, "completed: 1", ends(t, engines[1], id))
		errs := make([]error, len(engines))
		var all sync.WaitGroup
		for i, e := range engines {
			all.Go(func() { _, errs[i] = e.Do(t.Context(), workflow.Restart(id, workflow.UnlessRestarted())) })
		}
		all.Wait()
		require.Equal(t, 1, f.sql("SELECT count(*) FROM tasq.cases WHERE predecessor = '"+id.String()+"'"), "%v", errs)
		require.ErrorIs(t, errors.Join(errs...), workflow.ErrRestarted)
	}
}
