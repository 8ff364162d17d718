package engine_test

import (
	"log/slog"
	"sync"
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
