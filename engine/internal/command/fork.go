package command

import (
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// fork starts a fresh case from a past state of another one. The kernel repeats the changes of the original up to that
// state with new ids, in a tree of its own:
//
//	original   1 ── 2 ── 3 ── 4 ── 5        unchanged
//	fork             └─ as of 3 ──▶ 1'      one entry with everything, and then its own history
func (x *Executor) fork(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, err := tx.OpenCase(c.Case)
	if err != nil {
		return workflow.Result{}, err
	}
	entries, err := tx.Store().History(tx.Context(), u.Tree, c.Seq)
	if err != nil {
		return workflow.Result{}, fmt.Errorf("the history of case %s: %w", c.Case, err)
	}
	fresh := state.NewTree()
	fresh.Root = x.o.IDs.NewCaseID(tx.Now())
	return tx.On(tx.Create(fresh), o, workflow.Result{Case: fresh.Root}, func(m *kernel.Machine) error {
		if err := m.Fork(u.Tree.Root, entries, c.Seq); err != nil {
			return err
		}
		return m.NoteReason(fresh.Root, c.Reason)
	})
}
