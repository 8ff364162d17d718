package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
)

// KeepAlive sends heartbeats for an engine that is opening, until it is stopped: what comes before [Member.Join] may take longer
// than the others wait for a heartbeat. The engine holds nothing yet, so it does not matter what the store returns.
func KeepAlive(ctx context.Context, s store.Fleet, now func() time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for pause := retryWait; ; {
			timer := time.NewTimer(pause)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			news, err := s.Tick(ctx, store.EngineState{Busy: true, Clock: now()})
			if pause = news.Next; err != nil {
				pause = retryWait
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}
