package commit

import (
	"context"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Definitions finds the definitions of the process, as [kernel.Host] does.
type Definitions interface {
	Definition(fingerprint string) *workflow.Definition
	Named(name string) *workflow.Definition
}

// host is what the kernel sees of a transaction.
type host struct {
	Definitions
	tx *Tx
}

func (h host) Call(ctx context.Context, f func(context.Context) error) error {
	return h.tx.w.runner.call(ctx, f)
}
func (h host) Gate() *kernel.Gate { return &h.tx.gate }
func (h host) DB() domain.DB      { return h.tx.s.DB() }
func (h host) IDs() kernel.IDs    { return h.tx.w.o.IDs }
func (h host) Steps(owner [16]byte) ([]*workitem.Step, error) {
	return h.tx.s.Steps(h.tx.ctx, owner)
}
func (h host) NewToken(root workitem.CaseID) (string, error) { return h.tx.w.o.NewToken(root) }

// KeyHolder implements [kernel.Host]. What the request has done so far counts: a case that it started, failed or removed.
func (h host) KeyHolder(c *state.Case) (workitem.CaseID, error) {
	changed := make(map[workitem.CaseID]bool)
	for _, u := range h.tx.writes {
		changed[u.Tree.Root] = true
		other := u.Tree.Case(u.Tree.Root)
		if other != nil && other.ID != c.ID && other.HoldsKey() && other.Workflow == c.Workflow && other.Key == c.Key {
			return other.ID, nil
		}
	}
	holders, err := h.tx.s.KeyHolders(h.tx.ctx, c.Workflow, c.Key)
	for _, id := range holders {
		if id != c.ID && !changed[id] {
			return id, err
		}
	}
	return workitem.CaseID{}, err
}

// CachedSteps implements [kernel.Host].
func (h host) CachedSteps(root workitem.CaseID, job workitem.JobID) ([]*workitem.Step, bool) {
	return h.tx.w.trees.stepsOf(root, job)
}
