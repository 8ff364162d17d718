package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
)

// A server that crashes after a flush has its rows: the engine, which goes on, does not write them again.
func TestAServerCrashesAfterAFlush(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprint("alone ", alone), func(t *testing.T) {
			t.Parallel()
			server := pgtest.Restartable(t)
			// Its log is written for commits that wait for it, and otherwise late.
			execOn(t, server.DSN, "ALTER SYSTEM SET wal_writer_delay = '10s'", "ALTER SYSTEM SET wal_writer_flush_after = '1GB'", "SELECT pg_reload_conf()")
			o := postgres.Open(server.DSN, never)
			if !alone {
				o = sharedOpener{o}
			}
			w := &windowed{storetest.NewWorld(t, o, 1), server.DSN, rand.New(rand.NewPCG(7, 8))}
			w.start()
			for range 2 {
				w.fill()
				require.NoError(t, w.Store.View(t.Context(), func(store.Reader) error { return nil }))
				require.Zero(t, w.behind())
				require.NoError(t, server.Restart(true))
				require.Zero(t, w.behind(), "the rows are on the disk")
				awake(t, w.World)
				w.Resume()
				w.Update(func(b *storetest.Batch) { b.Start(`2`) })
				w.Check() // through a View, which writes the window
				w.complete()
			}
		})
	}
}
