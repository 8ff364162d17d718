package commit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/store/state"
)

// Request is a function on its way through the writer: a command, or several that belong together. Set the exported fields, and
// give it to one method of a [Writer] once.
type Request struct {
	// Run does the work in the transaction of the batch. If it fails, all that it did is undone, and nothing else.
	Run func(*Tx) error
	// Accepted is called by the writer each time Run has succeeded, before the commit; may be nil.
	Accepted func(*Tx)
	// Ended is called by the writer with the outcome, once it is durable; may be nil.
	Ended func(error)
	// Lazy is for a request whose commit may wait a moment for company, unless it is hurried by [Writer.Hurry].
	Lazy bool
	// Once is for a request whose Run must not be called again, as it calls the function of an Update.
	Once bool
	// Held is for a request whose Run uses what its caller gave it, so that the caller waits for its end also when its context ends.
	Held bool
	// Reads is for a request that changes nothing, so nothing waits for its commit.
	Reads bool

	ctx      context.Context
	deferred bool       // completion handlers are called by jobs
	done     chan error // gets the outcome, once durable; may be nil
	stage    atomic.Int32
	urgent   atomic.Bool // it is lazy no longer
	now      time.Time   // of its first run; later ones have the same
	err      error
	tx       *Tx
	tries    int         // how often another engine was faster
	separate bool        // it is done in a transaction of its own, in which it locks what it opens
	extended func(error) // gets the outcome of what an Extender added; nil if there is nothing
}

// Changes is what a request did that succeeded, to the first tree that it changed.
func (r *Request) Changes() []state.Change {
	if r.tx == nil || len(r.tx.writes.list) == 0 {
		return nil
	}
	return r.tx.writes.list[0].changes()
}

// The stages of a request. The writer and a caller whose context ends decide by them which of the two was first.
const (
	queued = iota
	begun
	withdrawn
)

// begin takes the request for the writer; false if its caller has withdrawn it. A request that is done again has begun.
func (r *Request) begin() bool {
	return r.stage.CompareAndSwap(queued, begun) || r.stage.Load() == begun
}

// isLazy reports whether the commit of a request may wait for company.
func (r *Request) isLazy() bool { return r.Lazy && !r.urgent.Load() }

// Submit queues a request and waits until it is durable. If the context ends while the command is queued, it is withdrawn. If
// it has begun by then, it may still happen; the function of an Update is waited for all the same, since it uses what its
// caller gave it.
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

// withdrawnBy is the error of a command that was queued when its context ended.
func withdrawnBy(cause error) error {
	return fmt.Errorf("%w; the command was withdrawn before it began, so it does not happen", cause)
}

// take returns the outcome of a request. Its channel can then carry that of another one.
func (w *Writer) take(r *Request, err error) error {
	w.answers.Put(r.done)
	return err
}

// Query submits a request that has a result, made of run. The writer alone has the result until it hands it over with the
// outcome: a caller whose context ends before gets the zero value, and shares nothing with the writer.
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

// Ask queues a request and returns; wait, which is called once, returns its outcome. It does not happen if there is an error.
func (w *Writer) Ask(ctx context.Context, r *Request) (wait func() error, err error) {
	if err := w.ask(ctx, r); err != nil {
		return nil, err
	}
	return func() error { return w.take(r, <-r.done) }, nil
}

// Send queues a request of the engine's own, whose outcome r.Ended gets, if anything; false if the writer is closed. The
// writer itself may call it.
func (w *Writer) Send(r *Request) bool {
	r.ctx = context.Background()
	return w.enqueue(r)
}

// Hurry has a lazy request that was queued wait for company no longer: its outcome is waited for.
func (w *Writer) Hurry(r *Request) {
	r.urgent.Store(true)
	w.queue.wake()
}

// ask queues a request whose outcome r.done gets.
func (w *Writer) ask(ctx context.Context, r *Request) error {
	if err := NotNested(ctx); err != nil {
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

// answer finds a channel for the outcome of a request. Each writer has its own: one that was made in a bubble of
// testing/synctest is of no use outside.
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
