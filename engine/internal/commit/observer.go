package commit

import (
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Extender adds to requests what can be done in the same transaction. The writer calls it once the function of a request has
// succeeded, before its changes are appended; not for the function of an Update, which is not called again if what was added
// takes the transaction with it, and not if [Tx.Deferred].
//
// An error undoes the request: it is that of the store, or wraps [ErrDefer]. The function that is returned gets the outcome: nil once
// all of it is durable, or why it did not happen. It is called once, after the observers.
type Extender interface {
	Extend(tx *Tx) (ended func(error), err error)
}

// Observer learns of each command that changed a tree of cases, once the command is durable. The writer calls it, in the order of
// the commits, so what it does is short, does not block, and sends no command that it waits for.
//
//	commit ── Committed(tree, changes) ──┬─ due work: jobs, and the steps of running ones
//	                                    ├─ waits and watches
//	                                    ├─ which cases wait for a topic
//	                                    ├─ retention: when a case is to be removed
//	                                    └─ a line in the log for each attempt that has ended
type Observer interface {
	// Committed takes the changes of a command in their order, with the tree as they have left it. The tree is the writer's: it is
	// read during the call and not kept.
	Committed(tree *state.Tree, changes []state.Change)
}

// Holder decides which of the jobs that a command opens or moves are left for other engines. Its methods are called by the writer.
type Holder interface {
	// Offers reports whether a job that waits to be done is left for any engine that can do it.
	Offers(c *state.Case, j *state.Job) bool
	// Offered takes the jobs that a command has left so, once it is durable and before the observers learn of it, and none after that.
	Offered(ids []workitem.JobID)
}
