package commit

import (
	"context"

	"github.com/tasq-dev/tasq/store"
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
