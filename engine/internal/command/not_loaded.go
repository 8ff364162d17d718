package command

import (
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A database may have cases of workflows that this engine was not opened with: those of an older version of the
// program, or of another program. The engine does not touch them.

// NotLoaded returns a [*kernel.NotLoadedError] if a command is for a case that runs on a definition which this engine
// was not opened with. Another program may be able to execute it. It returns nil for every other command, also for one
// that will fail.
func (x *Executor) NotLoaded(tx *commit.Tx, c *workflow.Command) error {
	var root workitem.CaseID
	var err error
	switch c.Kind {
	case workflow.KindStart, workflow.KindBroadcast:
		return nil // for no existing case
	case workflow.KindToken:
		root, err = TokenCase(c.Token)
	case workflow.KindAct, workflow.KindRetry, workflow.KindSkip, workflow.KindGiveUp:
		root, err = tx.RootOfItem(c.Item)
	case workflow.KindRetryIncident, workflow.KindGiveUpIncident:
		root, err = tx.Store().Root(tx.Context(), c.Job)
	default:
		root, err = tx.RootOfCase(c.Case)
	}
	if err != nil {
		return nil
	}
	u, err := tx.Open(root)
	if err != nil {
		return nil
	}
	u.Tree.Each(func(c *state.Case) {
		if err == nil && !c.State.Final() && x.o.Definitions.Definition(c.Fingerprint) == nil {
			err = &kernel.NotLoadedError{Case: c.ID, Workflow: c.Workflow, Version: c.Version, Fingerprint: c.Fingerprint}
		}
	})
	return err
}
