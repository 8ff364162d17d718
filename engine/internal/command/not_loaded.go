package command

import (
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A database may hold cases of workflows that this engine was not opened with: those of an older program, or of another
// one. The engine leaves all that is theirs alone, so that the program that has them finds it as it was.

// NotLoaded returns a [*kernel.NotLoadedError] if a command is about a case that runs on a version of a workflow which this engine was not
// opened with: a program that has it can execute the command. It is nil for every other command.
func (x *Executor) NotLoaded(tx *commit.Tx, c *workflow.Command) error {
	var root workitem.CaseID
	var err error
	switch c.Kind {
	case workflow.KindStart, workflow.KindBroadcast:
		return nil // it is about no case
	case workflow.KindToken:
		root, err = TokenCase(c.Token)
	case workflow.KindAct, workflow.KindRetry, workflow.KindSkip, workflow.KindGiveUp:
		root, err = tx.RootOfItem(c.Item)
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
