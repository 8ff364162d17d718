package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/store"
)

// transactions opens a store and counts its transactions, each of which is a sync.
type transactions struct {
	store.Opener
	updates atomic.Int64
}

// Open implements store.Opener.
func (c *transactions) Open(ctx context.Context, o store.Options) (store.Store, error) {
	return (&storehook.Opener{Opener: c.Opener, Update: func(run func() error) error {
		c.updates.Add(1)
		return run()
	}}).Open(ctx, o)
}

// Functions of Updates that may be called again share a transaction; each other one has its own.
func TestRepeatableUpdatesShareATransaction(t *testing.T) {
	ctx := t.Context()
	for name, test := range map[string]struct {
		opts []engine.UpdateOption
		want int64
	}{"once": {nil, 20}, "repeatable": {[]engine.UpdateOption{engine.Repeatable()}, 1}} {
		t.Run(name, func(t *testing.T) {
			c := &transactions{Opener: enginetest.Store(t)}
			e := enginetest.Open(t, c, engine.Config{})
			require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
				_, err := tx.DB().ExecContext(ctx, "CREATE TABLE mine (n INTEGER)")
				return err
			}))
			var ask []func(context.Context) error
			for range 20 {
				ask = append(ask, func(ctx context.Context) error {
					return e.Update(ctx, func(tx *engine.Tx) error {
						_, err := tx.DB().ExecContext(ctx, "INSERT INTO mine VALUES (1)")
						return err
					}, test.opts...)
				})
			}
			before := c.updates.Load()
			for _, err := range engine.Together(ctx, e.Engine, ask...) {
				require.NoError(t, err)
			}
			require.Equal(t, test.want, c.updates.Load()-before-1, "one is that of Together")
			require.Equal(t, 20, count(t, e, "SELECT count(*) FROM mine"))
		})
	}
}

// A repeatable function whose transaction was undone by SQL of another request is called again, and what it did is there once.
func TestARepeatableUpdateIsCalledAgain(t *testing.T) {
	ctx := t.Context()
	e := enginetest.New(t)
	withTable(t, e)
	calls := 0
	errs := engine.Together(ctx, e.Engine,
		func(ctx context.Context) error {
			return e.Update(ctx, func(tx *engine.Tx) error {
				calls++
				_, err := tx.DB().ExecContext(ctx, "INSERT INTO log VALUES (7)")
				return err
			}, engine.Repeatable())
		},
		runSQL(e, undoing),
	)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], store.ErrUndone)
	require.Equal(t, 2, calls)
	require.Equal(t, 1, count(t, e, "SELECT count(*) FROM log WHERE x = 7"))
}

// The caller of a repeatable function waits for its end, whose variables it may use, also when its context ends.
func TestTheFunctionOfAnUpdateIsWaitedFor(t *testing.T) {
	e := enginetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := false
	require.NoError(t, e.Update(ctx, func(*engine.Tx) error {
		cancel()
		done = true
		return nil
	}, engine.Repeatable()))
	require.True(t, done)
}
