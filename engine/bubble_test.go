package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A program that is tested with synthetic time may read at any moment: a reader that waits for an update, which waits for time to pass,
// does not stop the time.
func TestReadersLetSyntheticTimePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), sqlite.Memory())
		require.NoError(t, err)
		var updated sync.WaitGroup
		began := make(chan struct{})
		updated.Go(func() {
			require.NoError(t, e.Update(t.Context(), func(*engine.Tx) error {
				close(began)
				<-time.After(time.Millisecond)
				return nil
			}))
		})
		<-began
		require.NoError(t, e.View(t.Context(), func(store.Reader) error { return nil }))
		updated.Wait()
		require.NoError(t, e.Close())
	})
}

// A store that no other process reaches is not asked whether one left a command: hours of synthetic time cost nothing.
func TestAStoreInMemoryIsNotPolled(t *testing.T) {
	for _, reachable := range []bool{false, true} {
		t.Run(fmt.Sprint(reachable), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &polledOpener{reachable: reachable}
				e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), o)
				require.NoError(t, err)
				<-time.After(time.Hour)
				require.Equal(t, reachable, o.polls.Load() > 0)
				require.NoError(t, e.Close())
			})
		})
	}
}

// polledOpener opens a database in memory that says of itself whether it is reachable, and counts how often it is polled.
type polledOpener struct {
	reachable bool
	polls     atomic.Int64
}

// Open implements store.Opener.
func (o *polledOpener) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	s, err := sqlite.Memory().Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	p := &polledStore{Store: s, o: o}
	if o.reachable {
		return &reachableStore{p}, nil
	}
	return p, nil
}

type polledStore struct {
	store.Store
	o *polledOpener
}

// Reachable implements store.Watcher.
func (p *polledStore) Reachable() bool { return p.Store.(store.Watcher).Reachable() }

// Changed implements store.Watcher.
func (p *polledStore) Changed(context.Context) (bool, error) {
	p.o.polls.Add(1)
	return false, nil
}

// reachableStore says that other processes can leave commands.
type reachableStore struct{ *polledStore }

// Reachable implements store.Watcher.
func (*reachableStore) Reachable() bool { return true }
