package commit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Request is a unit of work for the writer: a command, or several commands of one transaction. Set the exported fields,
// and pass it to one method of a [Writer] once.
type Request struct {
	// Run does the work in the transaction of the batch. If it fails, its changes are rolled back, and no others.
	Run func(*Tx) error
	// Accepted is called by the writer each time Run has succeeded, before the commit; may be nil.
	Accepted func(*Tx)
	// Ended is called by the writer with the outcome, once it is durable; may be nil.
	Ended func(error)
	// Lazy requests may wait briefly so that others share their commit, until [Writer.MakeUrgent] is called.
	Lazy bool
	// Once says that Run must not be called again, since it calls the function of an Update.
	Once bool
	// Held says that Run uses variables of its caller, so the caller waits for its end even if its context ends.
	Held bool
	// Reads says that the request changes nothing, so a batch of such requests and lazy ones can wait.
	Reads bool
	// Key is the idempotency key of the command; "" if it has none. The keys of a batch are looked up together.
	Key string

	ctx         context.Context
	deferred    bool       // completion handlers are called by jobs
	done        chan error // receives the outcome, once durable; may be nil
	stage       atomic.Int32
	urgent      atomic.Bool // MakeUrgent was called, so it is no longer lazy
	now         time.Time   // the time of its first run, which repeated runs keep
	number      int         // the order of the first runs
	err         error
	tx          *Tx
	tries       int         // the number of conflicts with other engines
	disconnects int         // how often the connection ended while its SQL ran
	separate    bool        // it runs in a transaction of its own that locks the trees it opens
	extended    func(error) // receives the outcome of what an Extender added; nil if it added nothing
}

// Changes are the changes of a successful request to the first tree that it changed.
func (r *Request) Changes() []state.Change {
	if r.tx == nil || len(r.tx.writes.list) == 0 {
		return nil
	}
	return r.tx.writes.list[0].changes()
}

// OnTree returns a request that runs a command of the engine itself on the tree of a root case.
func OnTree(root workitem.CaseID, command string, f func(*Tx, *kernel.Machine) error) *Request {
	return &Request{Run: func(tx *Tx) error {
		u, err := tx.Open(root)
		if err != nil {
			return err
		}
		return tx.Internal(u, command, func(m *kernel.Machine) error { return f(tx, m) })
	}}
}

// The stages of a request. They decide a race between the writer, which begins the request, and a caller whose
// context ends.
const (
	queued = iota
	begun
	withdrawn
)

// begin claims the request for the writer; false if its caller has withdrawn it. A repeated request has begun already.
func (r *Request) begin() bool {
	return r.stage.CompareAndSwap(queued, begun) || r.stage.Load() == begun
}

// isLazy reports whether the commit may wait for further requests.
func (r *Request) isLazy() bool { return r.Lazy && !r.urgent.Load() }

// Submit queues a request and waits until it is durable. If the context ends while the request is queued, it is
// withdrawn. If it has begun by then, it may still be committed, and Submit returns without waiting for it, unless it
// is Held.
func (w *Writer) Submit(ctx context.Context, r *Request) error {
	if err := w.ask(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return w.take(r, err)
	case <-ctx.Done():
	}
	switch {
	case r.stage.CompareAndSwap(queued, withdrawn):
		return withdrawnBy(ctx.Err())
	case r.Held:
		return w.take(r, <-r.done)
	}
	return fmt.Errorf("%w; the command has begun and may still happen", ctx.Err())
}

// withdrawnBy returns the error of a command that was still queued when its context ended.
func withdrawnBy(cause error) error {
	return fmt.Errorf("%w; the command was withdrawn before it began, so it does not happen", cause)
}

// take receives the outcome of a request, and releases its channel for another one.
func (w *Writer) take(r *Request, err error) error {
	w.answers.Put(r.done)
	return err
}

// Query submits a request with a result, which run returns. The writer owns the result until it passes it on with the
// outcome: a caller whose context ends first gets the zero value, and shares no memory with the writer.
func Query[T any](ctx context.Context, w *Writer, r *Request, run func(*Tx) (T, error)) (T, error) {
	var result, none T
	r.Run = func(tx *Tx) (err error) {
		result, err = run(tx)
		return err
	}
	if err := w.Submit(ctx, r); err != nil {
		return none, err
	}
	return result, nil
}

// Ask queues a request without waiting for it; wait, which must be called once, returns its outcome. If the outcome is an
// error, the request had no effect.
func (w *Writer) Ask(ctx context.Context, r *Request) (wait func() error, err error) {
	if err := w.ask(ctx, r); err != nil {
		return nil, err
	}
	return func() error { return w.take(r, <-r.done) }, nil
}

// Send queues an internal request of the engine, and returns false if the writer is closed. Only r.Ended, if set, gets
// its outcome. The writer itself may call it.
func (w *Writer) Send(r *Request) bool {
	r.ctx = context.Background()
	return w.enqueue(r)
}

// MakeUrgent makes a queued lazy request urgent, because a caller waits for its outcome.
func (w *Writer) MakeUrgent(r *Request) {
	r.urgent.Store(true)
	w.queue.wake()
}

// ask queues a request whose outcome is sent to r.done.
func (w *Writer) ask(ctx context.Context, r *Request) error {
	if err := w.NotNested(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.ctx, r.done = ctx, w.answer()
	if !w.enqueue(r) {
		return w.o.Closed()
	}
	return nil
}

// answer returns a channel for the outcome of a request. Each writer has its own pool of channels, since a
// channel of a testing/synctest bubble cannot be used outside.
func (w *Writer) answer() chan error {
	if ch, ok := w.answers.Get().(chan error); ok {
		return ch
	}
	return make(chan error, 1)
}

// enqueue queues a request; false if the writer is closed.
func (w *Writer) enqueue(r *Request) bool {
	w.o.Active(1)
	if w.queue.push(r) {
		return true
	}
	w.o.Active(-1)
	return false
}
