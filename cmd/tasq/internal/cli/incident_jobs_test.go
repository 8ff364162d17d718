package cli_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// Timers that gave up are counted, and fired again together by the program that owns the database.
func TestTimersAreRetriedInBulk(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	b := builder.New[any]("timed")
	b.Path(b.Start(), builder.Task(b, "wait", builder.Work[any, any]{Timers: []activities.Timer{
		{Name: "remind", After: time.Minute, Task: func(context.Context, *activities.Activation) error {
			if down.Load() {
				return errors.New("no connection")
			}
			return nil
		}}}}), b.End())
	w, path := b.MustBuild(), filepath.Join(t.TempDir(), "a.db")
	t.Run("timers give up", func(t *testing.T) {
		e := enginetest.Open(t, sqlite.File(path), engine.Config{}, w)
		for range 3 {
			_, err := w.Start(t.Context(), e, nil)
			require.NoError(t, err)
		}
		e.Advance(24 * time.Hour)
	})
	says := func(want string, args ...string) string {
		code, out, errs := call(t.Context(), append(args, "--db", path)...)
		require.Equal(t, cli.ExitOK, code, errs)
		require.Equal(t, want, out)
		return errs
	}
	says("3 incidents would be acted on; repeat the command with --all\n", "incident", "retry", "--kind", "timer")
	says("3 incidents would be acted on\n", "incident", "retry", "--kind", "timer", "--all", "--dry-run")
	says("there is no incident that matches\n", "incident", "retry", "--kind", "handler")
	errs := says("there is no incident that matches\n", "incident", "retry", "--task", "wait")
	require.Contains(t, errs, "3 incidents of timers, functions, handlers or child cases not counted here; act on them with --kind timer")
	down.Store(false)
	e, err := engine.Config{}.Open(t.Context(), sqlite.File(path), w)
	require.NoError(t, err)
	says("3 incidents done, 0 refused\n", "incident", "retry", "--kind", "timer", "--all", "--by", "ann", "--reason", "it is back")
	says("there is no incident that matches\n", "incident", "retry", "--kind", "timer", "--all")
	require.NoError(t, e.Close())
}
