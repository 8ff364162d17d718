package commit

import (
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/store"
)

// A request that fails has no effect, but its error says something about the cases: "start is not possible in the state started" says that
// somebody has started the item. If the transaction is not committed, that may be wrong:
//
//	batch: A starts the item, B starts the item: refused ──▶ the commit fails ──▶ the item was never started
//
// So B does not get its own error. It runs again with the others, or gets the error of the commit.

// isUnconfirmed reports whether the error of a request may be due to what did not happen, when its transaction was not committed: a
// request before it was undone, or it read a case that the store did not compare with what other engines have written. A fault of the store
// says nothing about cases.
func (r *Request) isUnconfirmed(undone bool) bool {
	return r.err != nil && r.tx != nil && !fault.Is(r.err) && (undone || len(r.tx.opened) > 0)
}

// isolate handles the requests of a transaction whose commit the database rejected. One of them is the cause; running
// each again in a separate transaction shows which. A request that must not run twice gets the error.
func (w *Writer) isolate(batch []*Request, err error) (separate []*Request) {
	undone := false
	for _, r := range batch {
		succeeded, unconfirmed := r.err == nil, r.isUnconfirmed(undone)
		undone = undone || succeeded && !r.Reads
		if succeeded {
			w.trees.forget(r.tx)
		}
		switch {
		case !r.Once && (succeeded || unconfirmed):
			r.endExtension(err)
			r.err = nil
			separate = append(separate, r)
			continue
		case succeeded:
			r.err = refusedBy(err)
		case unconfirmed:
			r.err = repeat(r.err)
		}
		w.deliver(r)
	}
	return separate
}

// repeat returns the error of a request that must not run twice, and whose own error is unconfirmed.
func repeat(err error) error {
	return conflict(fmt.Errorf("%w: what it saw of other requests did not happen, and it failed: %v", store.ErrConflict, err))
}
