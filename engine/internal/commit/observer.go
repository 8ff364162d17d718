package commit

import (
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Extender adds work to a request that can be done in the same transaction, and so saves a commit. The writer calls it
// when the function of a request has succeeded, before its changes are appended. It is not called for the function of
// an Update, which could not be run again if the added work aborted the transaction, and not if [Tx.Deferred].
//
// An error rolls the request back; it is one of the store, or wraps [ErrDefer]. ended receives the outcome: nil if
// everything is durable, else why it is not. It is called once, after the observers.
type Extender interface {
	Extend(tx *Tx) (ended func(error), err error)
}

// Observer is notified of each command that changed a tree, once the command is durable, in the order of the commits.
// The writer calls it, so it must be fast, must not block, and must not wait for a command: the writer would wait for
// itself.
//
//	commit ── Committed(tree, changes) ──┬─ due work: jobs, and the steps of running ones
//	                                    ├─ callers that wait
//	                                    ├─ which cases wait for a topic
//	                                    ├─ retention: when a case is to be removed
//	                                    └─ a line in the log for each attempt that has ended
type Observer interface {
	// Committed receives the changes of a command in order, and the tree after them. The tree belongs to the writer: it
	// may be read during the call, and must not be kept.
	Committed(tree *state.Tree, changes []state.Change)
}

// Holder decides which of the jobs that a command opens or moves this engine keeps, and which it offers to all engines.
// The writer calls it.
type Holder interface {
	// Offers reports whether a pending or waiting job is offered to any engine that can run it.
	Offers(t *state.Tree, c *state.Case, j *state.Job) bool
	// Offered receives the jobs that a durable command has offered, before its observers are called, and nil after
	// that. So observers can skip these jobs.
	Offered(ids []workitem.JobID)
}
