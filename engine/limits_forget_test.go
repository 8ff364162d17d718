package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// What was set of a limit is in force while the definition counts the same; 0 is in force whatever it counts.
func TestRedefinedLimitForgetsOverride(t *testing.T) {
	db := sqlite.File(t.TempDir() + "/limits.db")
	ten := limit.Rate("x", 10, time.Minute, limit.SlidingWindow)
	for _, c := range []struct {
		name   string
		was    limit.Limit
		set    int64
		now    limit.Limit
		n, key int64
	}{
		{"other number", ten, 3, limit.Rate("x", 20, time.Minute, limit.SlidingWindow), 3, 2},
		{"other algorithm", ten, 3, limit.Rate("x", 20, time.Minute, limit.GCRA), 3, 2},
		{"other time", ten, 3, limit.Rate("x", 20, time.Hour, limit.SlidingWindow), 20, 20},
		{"slots", ten, 3, limit.Resource("x", 7), 7, 7},
		{"nothing set", ten, -1, limit.Rate("x", 20, time.Hour, limit.SlidingWindow), 20, 20},
		{"paused", ten, 0, limit.Resource("x", 7), 0, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := func(l ...limit.Limit) *engine.Engine {
				var list []engine.Workflow
				for _, l := range l {
					list = append(list, builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil },
						builder.Limits(builder.TakesBy(l, 1, func(s string) string { return s }))))
				}
				e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), db, list...)
				require.NoError(t, err)
				return e
			}
			do := func(e *engine.Engine, c workflow.Command) []workflow.LimitInfo {
				result, err := e.Do(t.Context(), c)
				require.NoError(t, err)
				return result.Limits
			}
			e := open(c.was)
			if c.set >= 0 {
				do(e, workflow.SetLimit("x", c.set))
			}
			do(e, workflow.SetLimitOf("x", "ada", 2))
			do(e, workflow.SetLimitOf("x", "eve", 0))
			require.NoError(t, e.Close())
			e = open(c.now)
			l := do(e, workflow.Limits())[0]
			require.Equal(t, c.n, l.Limit.N)
			require.Equal(t, c.now.Per, l.Limit.Per)
			require.Equal(t, c.now.Algorithm, l.Limit.Algorithm)
			require.Equal(t, c.now.N, l.Defined)
			require.True(t, l.Loaded)
			keys := map[string]int64{}
			for _, k := range l.Set {
				keys[k.Key] = k.N
			}
			if c.key == 2 {
				require.Equal(t, map[string]int64{"ada": 2, "eve": 0}, keys)
			} else if c.set != 0 {
				require.Equal(t, map[string]int64{"eve": 0}, keys)
			}
			do(e, workflow.ForgetLimit("x"))
			l = do(e, workflow.Limits())[0]
			require.Equal(t, c.now.N, l.Limit.N)
			require.Empty(t, l.Set)
			require.NoError(t, e.Close())

			e = open()
			l = do(e, workflow.Limits())[0]
			require.False(t, l.Loaded)
			require.Equal(t, "no function here", l.NextFree())
			do(e, workflow.ForgetLimit("x"))
			require.Empty(t, do(e, workflow.Limits()))
			_, err := e.Do(t.Context(), workflow.ForgetLimit("x"))
			require.ErrorIs(t, err, engine.ErrNotFound)
			require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
				all, err := r.Settings(t.Context())
				for _, s := range all {
					require.NotContains(t, s.Name, "limit/")
				}
				return err
			}))
			require.NoError(t, e.Close())
		})
	}
}
