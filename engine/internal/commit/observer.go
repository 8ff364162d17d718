package commit

import (
	"github.com/tasq-dev/tasq/store/state"
)

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
