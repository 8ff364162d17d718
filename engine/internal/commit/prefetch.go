package commit

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// keyPrefetch looks up the idempotency keys of the requests of a transaction together. In a store that engines share, each
// lookup takes a round trip to the server, and most keys are not in use.
type keyPrefetch struct {
	w     *Writer
	tx    store.SharedTx // nil if no other engine has the store open: then a lookup is cheap
	known map[string]bool
}

// before looks up the key of the first request, which runs next, if it has one that is not known, together with those of the
// other requests, and of the queued ones if they can be in the transaction.
func (f *keyPrefetch) before(requests []*Request, more bool) {
	if key := requests[0].Key; f.tx == nil || key == "" || f.known[key] {
		return
	}
	var keys []string
	for _, r := range requests {
		if r.Key != "" {
			keys = append(keys, r.Key)
		}
	}
	if more {
		keys = append(keys, f.w.queue.keys(maxBatch)...)
	}
	if len(keys) == 1 {
		return // the command looks it up
	}
	if f.known == nil {
		f.known = make(map[string]bool, len(keys))
	}
	for _, key := range keys {
		f.known[key] = true
	}
	// The transaction returns an error of the server to each request that uses it.
	_ = f.tx.PrefetchKeys(context.Background(), keys)
}

// ReadAhead provides trees that a view has read before the request, so that opening them takes no round trips, during
// which no other command runs. If one has changed since, the commit is stale, and the request runs again: it must not
// provide the same trees then. A store that no other engine has open does not compare trees with the database, so they
// are ignored there; reading a tree costs little.
func (tx *Tx) ReadAhead(trees []*state.Tree) {
	if tx.shared == nil {
		return
	}
	tx.ahead = make(map[workitem.CaseID]*state.Tree, len(trees))
	for _, t := range trees {
		tx.ahead[t.Root] = t
	}
}
