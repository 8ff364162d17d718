package store

import "context"

// Watcher is a store that other processes can leave commands in. Asking it costs microseconds, so an engine may do so a
// few times a second while it has nothing else to do; [Tx.Requests] then gets what was left.
type Watcher interface {
	// Changed reports whether requests may have come in since the last call that reported so.
	Changed(ctx context.Context) (bool, error)
}
