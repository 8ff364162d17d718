package commit

import (
	"errors"

	"github.com/tasq-dev/tasq/store"
)

// Constraints and triggers of the user's tables may be deferred: they are checked when the request has run, or as the
// transaction is committed. What they refuse, or the connection that they end, is the matter of one request:
//
//	batch: A B C ──▶ commit: refused ──▶ A, B and C each in a transaction of its own
//	                                       A, C: committed
//	                                       B: refused ──▶ again with its completion handlers called by jobs, if it has called any
//	                                                      refused ──▶ it has the error

// isOfOneRequest reports whether the error of a commit has its cause in one of the requests: the database rejected what it wrote, or the
// connection ended when its deferred triggers ran.
func isOfOneRequest(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrDisconnected)
}

// settleAlone handles a request whose commit, which had no other request, failed because of it. It returns the request if it is to be
// run again.
func (w *Writer) settleAlone(batch []*Request, err error) (again []*Request) {
	r := batch[0]
	if r.err != nil || r.Once || r.tx == nil {
		w.answerAll(batch, err)
		return nil
	}
	w.trees.forget(r.tx)
	r.endExtension(err)
	if r.err = err; errors.Is(err, store.ErrDisconnected) && w.mayRepeat(r) || r.deferHandlers() {
		r.err, r.separate = nil, true
		return batch
	}
	w.deliver(r)
	w.noteCommit(w.o.Lost(err), 1)
	return nil
}

// deferHandlers reports whether a failed request must be run again with its completion handlers called by jobs: one of them ended
// the transaction, or what they wrote was refused at the end of the request or in the commit.
func (r *Request) deferHandlers() bool {
	if r.err == nil || r.Once || r.deferred || !errors.Is(r.err, ErrDefer) && !r.tx.refusedAtEnd() {
		return false
	}
	r.deferred = true
	return true
}

// CallsHandler records that a completion handler is called in the transaction.
func (tx *Tx) CallsHandler() { tx.handled = true }

// refusedAtEnd reports whether completion handlers were called in the transaction and have returned: it failed after that.
func (tx *Tx) refusedAtEnd() bool { return tx != nil && tx.handled && tx.ran }
