package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// A job that is claimed when its grant of a shared limit has expired is given back, also if the store fails at first: nothing else
// releases a running job of an engine that is alive.
func TestAJobIsGivenBackWhenTheStoreWorksAgain(t *testing.T) {
	ctx := t.Context()
	var e *enginetest.Engine
	claims, releases := 0, 0
	// On SQLite, since a server has a clock of its own for shared limits.
	hook := &storehook.Opener{Opener: sqlite.Memory(), Append: func(entry *store.Entry, _ *state.Tree) error {
		switch entry.Command {
		case "job claim":
			if claims++; claims == 1 {
				e.Clock().Set(e.Now().Add(5 * time.Second))
			}
		case "job release":
			if releases++; releases <= 3 {
				return fmt.Errorf("%w: the disk is full", store.ErrUnavailable)
			}
		}
		return nil
	}}
	f := builder.MustFunc("f", func(_ context.Context, n int) (int, error) { return n, nil }, builder.Keep(builder.Forever),
		builder.Limits(builder.Takes(limit.Calls(2, time.Second).Shared(), 1)))
	e = enginetest.Open(t, hook, engine.Config{}, f)
	run, err := f.Run(ctx, e, 7, workflow.After(time.Minute)) // a job that was due later runs when its claim is committed
	require.NoError(t, err)
	e.Advance(time.Minute)
	e.Advance(time.Minute)
	s, err := run.Status(ctx, e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunCompleted, s.State)
	require.Equal(t, 7, s.Value)
	require.Equal(t, 4, releases, "three that failed, and one")
	require.Equal(t, 2, claims)
}
