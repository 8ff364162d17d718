package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/fleet"
	"github.com/tasq-dev/tasq/store"
)

// An engine that takes long to open sends heartbeats at the pace of the store until it is stopped, also after one that failed.
func TestAnEngineThatOpensSendsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{news: []store.News{{Next: 2 * time.Second}}, errs: []error{nil, errGone}}
		stop := fleet.KeepAlive(t.Context(), w, time.Now)
		<-time.After(61 * time.Second)
		stop()
		ticks := len(w.ticks)
		require.Equal(t, 31, ticks, "at 1, 3, 4, 6, 8 s and so on")
		require.True(t, w.ticks[0].Busy)
		require.Equal(t, time.Now().Add(-60*time.Second), w.ticks[0].Clock)
		<-time.After(time.Minute)
		require.Len(t, w.ticks, ticks)
	})
}
