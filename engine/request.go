package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// request is a command on its way through the writer.
type request struct {
	ctx      context.Context
	run      func(*Tx) error
	accepted func()      // called by the writer each time run has succeeded, before the commit; may be nil
	ended    func(error) // called by the writer with the outcome, once durable; may be nil
	lazy     bool        // its commit may wait a moment for company
	once     bool        // run calls the user's function of an Update, so it is not called again
	late     bool        // its completion handlers are told by jobs
	reads    bool        // it changes nothing, so nothing waits for its commit
	done     chan error  // gets the outcome, once durable; may be nil
	stage    atomic.Int32
	now      time.Time // of its first run; later ones have the same
	err      error
	tx       *Tx
}

// The stages of a request. The writer and a caller whose context ends decide by them which of the two was first.
const (
	queued = iota
	begun
	withdrawn
)

// begin takes the request for the writer; false if its caller has withdrawn it. A request that is done again has begun.
func (r *request) begin() bool {
	return r.stage.CompareAndSwap(queued, begun) || r.stage.Load() == begun
}

// submit queues a command and waits until it is durable. If the context ends while the command is queued, it is withdrawn. If
// it has begun by then, it may still happen; the function of an Update is waited for all the same, since it uses what its
// caller gave it.
func (e *Engine) submit(ctx context.Context, r *request) error {
	if err := e.ask(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return e.take(r, err)
	case <-ctx.Done():
	}
	switch {
	case r.stage.CompareAndSwap(queued, withdrawn):
		return withdrawnBy(ctx.Err())
	case r.once:
		return e.take(r, <-r.done)
	}
	return fmt.Errorf("%w; the command has begun and may still happen", ctx.Err())
}

// withdrawnBy is the error of a command that was queued when its context ended.
func withdrawnBy(cause error) error {
	return fmt.Errorf("%w; the command was withdrawn before it began, so it does not happen", cause)
}

// take returns the outcome of a request. Its channel can then carry that of another one.
func (e *Engine) take(r *request, err error) error {
	e.answers.Put(r.done)
	return err
}

// submitFor submits a command that has a result. The writer alone has the result until it hands it over with the outcome: a
// caller whose context ends before gets the zero value, and shares nothing with the writer.
func submitFor[T any](ctx context.Context, e *Engine, r *request, run func(*Tx) (T, error)) (T, error) {
	var result, none T
	r.run = func(tx *Tx) (err error) {
		result, err = run(tx)
		return err
	}
	if err := e.submit(ctx, r); err != nil {
		return none, err
	}
	return result, nil
}

// ask queues a request whose outcome r.done gets.
func (e *Engine) ask(ctx context.Context, r *request) error {
	if err := notNested(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.ctx, r.done = ctx, e.answer()
	if !e.enqueue(r) {
		return e.closedError()
	}
	return nil
}

// answer finds a channel for the outcome of a request. Each engine has its own: one that was made in a bubble of
// testing/synctest is of no use outside.
func (e *Engine) answer() chan error {
	if ch, ok := e.answers.Get().(chan error); ok {
		return ch
	}
	return make(chan error, 1)
}

// enqueue queues a request; false if the engine is closed.
func (e *Engine) enqueue(r *request) bool {
	e.active.add(1)
	if e.queue.push(r) {
		return true
	}
	e.active.add(-1)
	return false
}
