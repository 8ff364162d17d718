package commit

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// host is the view of the kernel on a transaction. It is a single pointer, so that its conversion to [kernel.Host] does
// not allocate.
type host struct{ tx *Tx }

// Definition implements [kernel.Definitions].
func (h host) Definition(fingerprint string) *workflow.Definition {
	return h.tx.w.o.Definitions.Definition(fingerprint)
}

// Named implements [kernel.Definitions].
func (h host) Named(name string) *workflow.Definition { return h.tx.w.o.Definitions.Named(name) }

// Suspension implements [kernel.Suspensions].
func (h host) Suspension(name string) (*state.Suspension, error) {
	if s := h.tx.w.o.Suspensions; s != nil {
		return s.Suspension(h.tx, name)
	}
	return nil, nil
}

func (h host) Call(ctx context.Context, f func(context.Context) error) error {
	return h.tx.w.runner.call(ctx, f)
}
func (h host) Control() *kernel.Control { return &h.tx.control }
func (h host) DB() domain.DB            { return h.tx.s.DB() }
func (h host) IDs() kernel.IDs          { return h.tx.w.o.IDs }
func (h host) Steps(owner [16]byte) ([]*workitem.Step, error) {
	return h.tx.s.Steps(h.tx.ctx, owner)
}
func (h host) NewToken(root workitem.CaseID) (string, error) { return h.tx.w.o.NewToken(root) }

// KeyHolders implements [kernel.BusinessKeys].
func (h host) KeyHolders(c *state.Case) ([]workitem.CaseID, error) { return h.tx.KeyHolders(c) }

// KeyStarts implements [kernel.BusinessKeys].
func (h host) KeyStarts(c *state.Case, after time.Time) ([]store.KeyStart, error) {
	return h.tx.KeyStarts(c, after)
}

// IsLive implements [kernel.BusinessKeys].
// It opens the tree, so that the commit depends on the case: if another engine ends it meanwhile, the request runs
// again.
func (h host) IsLive(root workitem.CaseID) (bool, error) {
	u, err := h.tx.Open(root)
	if errors.Is(err, store.ErrNotFound) { // only an ended case can be removed
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !u.Tree.Case(root).State.Final(), nil
}

// CachedSteps implements [kernel.RecordedSteps].
func (h host) CachedSteps(root workitem.CaseID, job workitem.JobID) ([]*workitem.Step, bool) {
	return h.tx.w.trees.stepsOf(root, job)
}
