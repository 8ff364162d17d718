package dispatch

import (
	"context"
	"sync"

	"github.com/tasq-dev/tasq/engine/internal/worker"
)

// group is the claims of the jobs of a batch, which share a worker:
//
//	claims ──▶ all are decided ──▶ the successful ones run, and meet in the batch
type group struct {
	batch *worker.Batch
	pool  *pool
	held  int // claims that have not ended; the worker is free after the last. The lock of the scheduler guards it.

	mu        sync.Mutex
	undecided int      // claims whose commit is not known yet
	claims    []*claim // the successful ones
}

func newGroup(ctx context.Context, p *pool) *group {
	return &group{batch: worker.NewBatch(ctx), pool: p}
}

// decided records the outcome of a claim, and starts the successful ones once all are decided. A claim can fail while the others
// succeed: then the batch is smaller.
func (g *group) decided(c *claim, begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.undecided--; begins {
		g.claims = append(g.claims, c)
		g.batch.Expect(c.job)
	}
	if g.undecided > 0 {
		return
	}
	for _, c := range g.claims {
		g.pool.do(c)
	}
	g.claims = nil
}

// claimEnded records that a claim has ended, and reports whether it was the last. The lock of the scheduler is held.
func (g *group) claimEnded() bool {
	g.held--
	return g.held == 0
}
