package engine

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// A database may hold cases of workflows that this engine was not opened with: those of an older program, or of another
// one. The engine leaves all that is theirs alone, so that the program that has them finds it as it was.

// errForeign says that a job is one of those.
var errForeign = fmt.Errorf("%w: the job is left for a program that has it", ErrUnknown)

// onOurJob is like onJob, and refuses a job of a workflow that this engine was not opened with.
func (e *Engine) onOurJob(n entry, command string, lazy bool, f func(*kernel.Machine) error) *request {
	r := e.onJob(n.root, command, lazy, f)
	run := r.run
	r.run = func(tx *Tx) error {
		u, err := tx.open(n.root)
		if err != nil {
			return err
		}
		if c, _ := u.tree.Job(n.job); c != nil && e.byPrint[c.Fingerprint] == nil {
			e.leave(c)
			return errForeign
		}
		return run(tx)
	}
	return r
}

// leave says, once for each definition, that work of it is due and left alone: the program may have lost an old version
// whose cases were not at their ends. It is for the writer only. An engine without workers does not work anyway.
func (e *Engine) leave(c *store.Case) {
	if e.left[c.Fingerprint] || e.cfg.Workers < 0 {
		return
	}
	e.left[c.Fingerprint] = true
	e.log.Warn("work is due that is left alone, since the engine was not opened with its workflow, or not with that version",
		"workflow", c.Workflow, "case", c.ID)
}

// foreign reports whether a command is about a workflow that this engine was not opened with, but that the database
// knows: then the program that has it will do the command.
func (tx *Tx) foreign(c RemoteCommand, stored []*store.Definition) bool {
	if c.Do == RemoteStart {
		known := slices.ContainsFunc(stored, func(d *store.Definition) bool { return d.Name == c.Workflow })
		return known && tx.e.byName[c.Workflow] == nil
	}
	var root workitem.CaseID
	var err error
	switch c.Do {
	case RemoteBroadcast:
		return false // it is for whoever is here
	case RemoteToken:
		root, err = TokenCase(c.Token)
	case RemoteItem:
		root, err = tx.root(c.Item)
	default:
		root, err = tx.rootOfCase(c.Case)
	}
	if err != nil {
		return false
	}
	u, err := tx.open(root)
	if err != nil {
		return false
	}
	foreign := false
	u.tree.Each(func(c *store.Case) {
		foreign = foreign || !c.State.Final() && tx.e.byPrint[c.Fingerprint] == nil
	})
	return foreign
}
