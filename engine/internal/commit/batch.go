package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/store"
)

// maxBatch limits the requests of one commit, so that the first does not wait for thousands of others.
const maxBatch = 256

// lazyWait is how long a batch of lazy requests waits for further requests. The claim of a job is lazy: a short job
// reports its result within this time, and both share one commit. So is the record of a step for which its function
// does not wait: the function may end within this time.
const lazyWait = 500 * time.Microsecond

// ErrDefer says that a completion handler timed out, or that its SQL aborted the whole transaction. The request is run
// again with [Tx.Deferred]: a job calls the handler later, so that the handler cannot prevent the end of the case.
var ErrDefer = errors.New("a completion handler took its transaction with it")

// commit executes the queued requests in one transaction. Each request fails alone. If one of them makes the store roll
// back the whole transaction, it gets the error, and the others are run again without it, until each is committed
// exactly once or has failed; see docs/decisions/010-a-request-fails-alone.md.
func (w *Writer) commit(first *Request) {
	batch, err := w.transact(append(w.batch, first), true)
	all := batch
	separate := w.settle(batch, err)
	inOrder(separate)
	// They come after the batch: the requests that could be run together do not wait for the locks of these.
	for _, r := range separate { // each in a transaction of its own, in which it locks what it opens
		one, err := w.transact([]*Request{r}, false)
		for len(one) > 0 {
			one = w.settle(one, err)
			if len(one) > 0 {
				one, err = w.transact(one, false)
			}
		}
	}
	clear(all)
	w.batch = all[:0]
	w.trees.trim()
}

// settle answers the requests of a transaction that has ended, with or without an error. Requests that were rolled back
// because of another request or another engine are run again at once; those that must be run again in separate
// transactions are returned.
func (w *Writer) settle(batch []*Request, err error) (separate []*Request) {
	for len(batch) > 0 {
		switch {
		case endedTransaction(batch):
			var victim *Request
			if batch, victim = w.answerLast(batch); victim != nil {
				var after []*Request
				batch, after = splitAfter(batch, victim)
				separate = append(append(separate, victim), after...)
			}
			err = nil
		// A stale commit is a conflict as well, but with a list of the cases that have changed, so only their trees
		// are read again.
		case isStale(err), errors.Is(err, store.ErrNotCommitted):
			var locks []*Request
			batch, locks = w.splitRolledBack(batch, err)
			separate, err = append(separate, locks...), nil
		case isOfOneRequest(err) && len(batch) > 1:
			return append(separate, w.isolate(batch, err)...)
		case isOfOneRequest(err):
			return append(separate, w.settleAlone(batch, err)...)
		default:
			w.answerAll(batch, err)
			return separate
		}
		if len(batch) > 0 {
			batch, err = w.transact(batch, false)
		}
	}
	return separate
}

// answerAll answers requests of a transaction that is over.
func (w *Writer) answerAll(batch []*Request, err error) {
	// The error may say that another process has the database now; all callers then get ErrClosed.
	err = w.o.Lost(err)
	if err == nil {
		w.measure(batch)
	}
	undone := false
	for _, r := range batch {
		switch {
		case err == nil:
		case r.err == nil:
			undone = undone || !r.Reads
			r.err = refusedBy(err)
			w.trees.forget(r.tx)
		case r.isUnconfirmed(undone):
			r.err = fmt.Errorf("%w; before that the request itself failed: %v", refusedBy(err), r.err)
		}
		w.deliver(r)
	}
	w.noteCommit(err, len(batch))
}

// measure reports the size of a commit.
func (w *Writer) measure(batch []*Request) {
	if w.o.Committed == nil {
		return
	}
	var all Size
	for _, r := range batch {
		if r.err != nil || r.tx == nil {
			continue
		}
		one := r.tx.size
		all = Size{all.Requests + one.Requests, all.Entries + one.Entries, all.Changes + one.Changes, all.Bytes + one.Bytes}
	}
	if all.Entries == 0 {
		return
	}
	err := w.runner.call(context.Background(), func(context.Context) error {
		w.o.Committed(all)
		return nil
	})
	var stack []any
	if p, ok := errors.AsType[*Panic](err); ok {
		stack = []any{"stack", string(p.Stack)}
	}
	w.o.Faults.Note("middleware", err, "a Commit of Config.Wrap failed; what was committed stands", stack...)
}

// refusedBy returns the error of a command that succeeded, but was not committed.
func refusedBy(err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, store.ErrRefused) { // the latter is no fault: the same again is refused again
		return err
	}
	return fmt.Errorf("%w: %w", fault.ErrCommit, err)
}

// endedTransaction reports whether the last request of a batch ended its transaction.
func endedTransaction(batch []*Request) bool {
	return len(batch) > 0 && errors.Is(batch[len(batch)-1].err, store.ErrUndone)
}

// transact runs requests in one transaction: the given ones, and queued ones if more are allowed. A successful Update
// is the last of its transaction, since its function must not be called again if a later request rolls back the
// transaction. The error wraps store.ErrUndone if the last returned request ended the transaction.
func (w *Writer) transact(batch []*Request, more bool) ([]*Request, error) {
	err := w.o.Store.Update(context.Background(), func(s store.Tx) error {
		var shared store.SharedTx
		if w.o.Shared {
			shared, _ = s.(store.SharedTx)
		}
		// Errors of the store are marked as such here, in one place, so that they are never taken for errors of a
		// callback.
		s = fault.Tx(s)
		keys := keyPrefetch{w: w, tx: shared}
		for i := 0; ; i++ {
			if i == len(batch) {
				r := (*Request)(nil)
				if more {
					r = w.next(batch)
				}
				if r == nil {
					return nil
				}
				batch = append(batch, r)
			}
			r := batch[i]
			keys.before(batch[i:], more)
			w.execute(s, shared, r)
			switch {
			case errors.Is(r.err, store.ErrUndone):
				batch = append(slices.Delete(batch, i, i+1), r) // last in the batch: in a repeated batch, requests after it have not run yet
				return r.err
			// Its function has had its effect outside of the transaction too, so nothing may follow it that could
			// roll it back.
			case r.Once && r.err == nil:
				more = false
			}
		}
	})
	return batch, err
}

// answerLast answers the last request of a batch, which ended the transaction, and returns the others, which must be
// run again. If the store aborted the last one to resolve a deadlock with another program, it is returned as the
// victim, to be run again in a separate transaction: the other program has proceeded by then, so the deadlock does not
// occur again. So is one whose connection ended while its SQL ran: the server may have been restarted. If that happens
// again and again, its SQL is the cause, and it gets an error that is no fault of the store.
func (w *Writer) answerLast(batch []*Request) (kept []*Request, victim *Request) {
	last := len(batch) - 1
	failed := batch[last]
	undone := false
	for _, r := range batch[:last] {
		unconfirmed := r.isUnconfirmed(undone)
		undone = undone || r.err == nil && !r.Reads
		w.trees.forget(r.tx)
		r.endExtension(store.ErrUndone)
		if r.Once { // it has failed: a successful one would be the last of its transaction
			if unconfirmed {
				r.err = repeat(r.err)
			}
			w.deliver(r)
		} else {
			kept = append(kept, r)
		}
	}
	if failed.deferHandlers() {
		kept = append(kept, failed)
		inOrder(kept)
		return kept, nil
	}
	if !failed.Once && w.mayRepeat(failed) {
		failed.endExtension(failed.err)
		failed.err, failed.separate = nil, true
		return kept, failed
	}
	w.deliver(failed)
	return kept, nil
}

// deliver sends the outcome of a request to its callers. Observers come first, so a caller that queries next finds
// waits, limits and due jobs as they are after its command.
func (w *Writer) deliver(r *Request) {
	if r.err == nil {
		w.publish(r.tx)
	}
	r.endExtension(r.err)
	if r.done != nil {
		r.done <- r.err
	}
	if r.Ended != nil {
		r.Ended(r.err)
	}
	w.o.Active(-1)
}

// next returns another request for the batch, or nil to commit it. A batch without an urgent request waits
// for lazyWait.
func (w *Writer) next(batch []*Request) *Request {
	if len(batch) >= maxBatch {
		return nil
	}
	r, over := w.queue.pop()
	if r != nil || over || !canWait(batch) {
		return r
	}
	// The timer of idle is used again: the writer waits either for a batch to begin or for a batch to grow.
	w.lazyTimer.Reset(lazyWait)
	defer w.lazyTimer.Stop()
	for {
		select {
		case <-w.queue.ready:
			if r, over := w.queue.pop(); r != nil || over || !canWait(batch) {
				return r
			}
		case <-w.lazyTimer.C:
			return nil
		}
	}
}

// canWait reports whether a batch may wait for further requests: it has lazy requests, and the others only
// read.
func canWait(batch []*Request) bool {
	lazy := false
	for _, r := range batch {
		if !r.isLazy() && !r.Reads {
			return false
		}
		lazy = lazy || r.Lazy
	}
	return lazy
}

// execute runs one request in the open transaction, and rolls it back if it fails.
func (w *Writer) execute(s store.Tx, shared store.SharedTx, r *Request) {
	if !r.begin() {
		r.err = context.Canceled
		return
	}
	if r.now.IsZero() { // not the time of the batch, which may have begun before a timer fired that queued this request
		r.now = w.o.Now()
		w.begun++
		r.number = w.begun
		if err := r.ctx.Err(); err != nil {
			r.err = withdrawnBy(err)
			return
		}
	}
	w.attempt(s, shared, r)
	if !errors.Is(r.err, store.ErrUndone) && r.deferHandlers() {
		w.attempt(s, shared, r)
	}
	if r.err == nil && r.Accepted != nil {
		r.Accepted(r.tx)
	}
}

// attempt runs a request once. In a shared store it locks cases only if a conflict is likely, or a conflict could not
// be retried.
func (w *Writer) attempt(s store.Tx, shared store.SharedTx, r *Request) {
	r.tx = &Tx{w: w, s: s, shared: shared, locks: shared != nil && (r.Once || r.separate), now: r.now, ctx: detached(r.ctx), deferred: r.deferred}
	defer r.tx.control.End()
	r.err = r.tx.try(func(tx *Tx) error {
		err := r.Run(tx)
		if err == nil && w.extender != nil && !r.Once && !r.Reads && !r.deferred {
			r.extended, err = w.extender.Extend(tx)
		}
		if r.Reads {
			return err
		}
		if random := w.o.IDs.Failed(); random != nil { // the source of random bits failed, so the new ids may not be unique
			return fmt.Errorf("make ids by Config.Random: %w", random)
		}
		return err
	})
	if r.err != nil {
		r.endExtension(r.err)
	}
}

// endExtension reports the outcome of what was added to a request.
func (r *Request) endExtension(err error) {
	if ended := r.extended; ended != nil {
		r.extended = nil
		ended(err)
	}
}

// detached returns the context of a command that has begun. It does not end with that of the caller, so that the
// command is executed completely.
func detached(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// try runs a request in a savepoint, and rolls it back if it fails.
func (tx *Tx) try(run func(*Tx) error) error {
	err := tx.s.Savepoint(tx.ctx, func() error {
		if err := run(tx); err != nil {
			return err
		}
		err := tx.append()
		tx.ran = err == nil
		return err
	})
	if err != nil {
		if tx.ran { // a deferred constraint failed after the changes were appended, which the trees can no longer undo
			tx.w.trees.forget(tx)
		}
		tx.Rollback()
	}
	return err
}

// publish reports the changes of a committed request to the observers.
func (w *Writer) publish(tx *Tx) {
	if len(tx.offered) > 0 {
		w.o.Holder.Offered(tx.offered)
		defer w.o.Holder.Offered(nil)
	}
	for _, u := range tx.writes.list {
		changes := u.changes()
		if w.trees.has(u.Tree.Root) {
			w.trees.index.committed(u.Tree) // before the observers, see IsLive
		}
		for _, o := range w.observers {
			o.Committed(u.Tree, changes)
		}
		w.trees.committed(u)
	}
}

// noteCommit logs when the store starts and stops failing, and retries overdue work at once when it works again.
func (w *Writer) noteCommit(err error, commands int) {
	if err == nil && commands == 0 || errors.Is(err, ErrClosed) {
		return
	}
	if w.o.Faults.Note("commit", err, "a commit failed; none of its commands happened: those of callers are refused, and what is "+
		"due is tried again", "commands", commands) {
		w.o.Recovered()
	}
}
