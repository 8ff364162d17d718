package engine

import (
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A database may hold cases of workflows that this engine was not opened with: those of an older program, or of another
// one. The engine leaves all that is theirs alone, so that the program that has them finds it as it was.

// errNotLoaded says that a job is one of those.
var errNotLoaded = fmt.Errorf("%w: the job is left for a program that has it", ErrUnknown)

// onLoadedJob is like onJob, and refuses a job of a workflow that this engine was not opened with.
func (e *Engine) onLoadedJob(n entry, command string, lazy bool, f func(*kernel.Machine) error) *request {
	r := e.onJob(n.root, command, lazy, f)
	run := r.run
	r.run = func(tx *Tx) error {
		u, err := tx.open(n.root)
		if err != nil {
			return err
		}
		if c, _ := u.tree.Job(n.job); c != nil && e.byPrint[c.Fingerprint] == nil {
			return errNotLoaded
		}
		return run(tx)
	}
	return r
}

// NotLoadedError refuses to act on a case whose version of its workflow the engine was not opened with. It is an
// [ErrUnknown], with the code "not-loaded".
type NotLoadedError = kernel.NotLoadedError

// notLoaded returns a [*NotLoadedError] if a command is about a case that runs on a version of a workflow which this engine was not
// opened with: a program that has it can execute the command. It is nil for every other command.
func (tx *Tx) notLoaded(c *workflow.Command) error {
	var root workitem.CaseID
	var err error
	switch c.Kind {
	case workflow.KindStart, workflow.KindBroadcast:
		return nil // it is about no case
	case workflow.KindToken:
		root, err = TokenCase(c.Token)
	case workflow.KindAct:
		root, err = tx.root(c.Item)
	default:
		root, err = tx.rootOfCase(c.Case)
	}
	if err != nil {
		return nil
	}
	u, err := tx.open(root)
	if err != nil {
		return nil
	}
	u.tree.Each(func(c *state.Case) {
		if err == nil && !c.State.Final() && tx.e.byPrint[c.Fingerprint] == nil {
			err = &NotLoadedError{Case: c.ID, Workflow: c.Workflow, Version: c.Version}
		}
	})
	return err
}
